"""Forms of the volunteers' pages."""

from django import forms


class DeviceNameForm(forms.Form):
    name = forms.CharField(max_length=80, label="Name")


class ProfileForm(forms.Form):
    is_profile_public = forms.BooleanField(
        required=False,
        label="Public profile",
        help_text="Others may open a page with your totals per run. Your name on leaderboards and"
        " among the peers is shown in either case.",
    )


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, label="What is it for?")
