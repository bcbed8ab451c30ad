"""Forms about runs and their configs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms

from web.runs.catalogue import Preset
from web.runs.draft_body import DraftError, text_check
from web.runs.models import Run
from web.runs.services.runs import MAX_MESSAGE
from web.runs.services.texts import MAX_DESCRIPTION

LASTS = (
    ("", "until somebody opens it"),
    ("15", "15 minutes"),
    ("60", "an hour"),
    ("240", "4 hours"),
    ("720", "12 hours"),
    ("1440", "a day"),
    ("10080", "a week"),
)


class PlainTextForm(forms.Form):
    """Takes no letters that a database cannot keep."""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name, value in data.items():
            if isinstance(value, str):
                try:
                    text_check(value)
                except DraftError as error:
                    self.add_error(name, str(error))
        return data


class PauseForm(PlainTextForm):
    reason = forms.CharField(
        max_length=200,
        required=False,
        label="Reason",
        help_text="Shown on the run's page and kept in the audit log.",
    )
    lasts = forms.ChoiceField(
        choices=LASTS,
        required=False,
        label="How long",
        help_text="The site then opens the run by itself.",
    )
    until = forms.DateTimeField(
        required=False,
        label="Or until (UTC)",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if data.get("lasts") and data.get("until"):
            self.add_error("until", "Choose a length or an end, not both.")
        return data

    def until_at(self, now: datetime) -> datetime | None:
        """Return when the pause ends, as chosen."""
        if self.cleaned_data.get("lasts"):
            return now + timedelta(minutes=int(self.cleaned_data["lasts"]))
        until: datetime | None = self.cleaned_data.get("until")
        return until.replace(tzinfo=UTC) if until else None


class MessageForm(PlainTextForm):
    text = forms.CharField(
        max_length=MAX_MESSAGE,
        label="Message",
        help_text="Appears in the events of the run's page, for everybody who sees it.",
    )


class CloneForm(PlainTextForm):
    title = forms.CharField(max_length=120, label="Title")
    slug = forms.CharField(
        max_length=60,
        label="Address",
        help_text="Small letters, digits and hyphens: /runs/address/. It cannot be changed later.",
    )


class TextsForm(PlainTextForm):
    """How a run is presented; none of it is part of its config."""

    title = forms.CharField(max_length=120, label="Title")
    summary = forms.CharField(
        max_length=300, label="Summary", help_text="One sentence for the list of runs."
    )
    description = forms.CharField(
        max_length=MAX_DESCRIPTION,
        required=False,
        label="About",
        help_text="What is trained, why, and what becomes of the model. Plain text; "
        "an empty line begins a new paragraph, addresses become links.",
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    is_public = forms.BooleanField(
        required=False,
        initial=True,
        label="Public",
        help_text="Everybody sees the run once it is open; otherwise its members only.",
    )
    join_policy = forms.ChoiceField(
        required=False,
        initial=Run.JoinPolicy.OPEN,
        label="Who may join",
        choices=Run.JoinPolicy.choices,
        help_text="Whoever is in the run already stays in it. Requests wait in the queue.",
    )


class NewRunForm(TextsForm, CloneForm):
    preset = forms.ChoiceField(label="Begin with", required=False, widget=forms.RadioSelect)
    file = forms.FileField(
        required=False,
        label="Or with a file",
        help_text="A config that was exported here or elsewhere, as JSON or signed.",
    )

    def __init__(self, *args: Any, presets: Sequence[Preset], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["preset"]
        field.choices = [(p.key, p.title) for p in presets]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if not self.errors and not data.get("preset") and not data.get("file"):
            self.add_error("preset", "Choose one, or a file.")
        return data


class TasksForm(PlainTextForm):
    entries = forms.CharField(
        max_length=65_536,
        label="Tasks",
        help_text="What <code>beeyard tasks --json</code> prints where the package is installed.",
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )
