"""Forms of the desk."""

from django import forms


class MoveForm(forms.Form):
    reason = forms.CharField(
        max_length=200,
        required=False,
        label="Reason",
        help_text="Shown on the run's page and kept in the audit log.",
    )


class BanForm(forms.Form):
    reason = forms.CharField(
        max_length=300,
        label="Reason",
        help_text="Shown to the person who tries to log in, and kept in the audit log.",
    )


class LaunchForm(forms.Form):
    count = forms.IntegerField(min_value=1, max_value=8, initial=1, label="How many trainers")
