"""Forms of the volunteers' pages."""

from django import forms


class DeviceNameForm(forms.Form):
    name = forms.CharField(max_length=80, label="Name")


class ProfileForm(forms.Form):
    is_profile_public = forms.BooleanField(
        required=False,
        label="Public profile",
        help_text="Your name stands on leaderboards and among the peers, and others may open a"
        " page with your totals. Otherwise you are shown as “a volunteer”; it counts the same.",
    )


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, label="What is it for?")
