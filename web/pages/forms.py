"""Forms of the volunteers' pages."""

from django import forms

from web.accounts.countries import countries


class DeviceNameForm(forms.Form):
    name = forms.CharField(max_length=80, label="Name")


class ProfileForm(forms.Form):
    is_profile_public = forms.BooleanField(
        required=False,
        label="Public profile",
        help_text="Your name stands on leaderboards and among the peers, and others may open a"
        " page with your totals. Otherwise you are shown as “a volunteer”; it counts the same.",
    )


def _country_choices() -> list[tuple[str, str]]:
    return [("", "Not shown"), *countries().items()]


class CountryForm(forms.Form):
    country = forms.ChoiceField(
        required=False,
        label="Country",
        choices=_country_choices,
        help_text="Only if you want to: this site never looks up where you are. The page of a run"
        " then counts you among those of this country, once at least three people of it chose it.",
    )


class AskForm(forms.Form):
    """Asking to join a run."""

    text = forms.CharField(
        max_length=300,
        required=False,
        label="Who you are, and what you would train with",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="At most 300 characters; the run's moderators read it.",
    )


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, label="What is it for?")
