"""Forms of the desk."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from training.protocol.states import Role
from web.monitoring.models import HarmUndo
from web.runs.models import Checkpoint, RunMember


class MoveForm(forms.Form):
    reason = forms.CharField(
        max_length=200,
        required=False,
        label="Reason",
        help_text="Shown on the run's page and kept in the audit log.",
    )


_LENGTHS = (
    ("", "For good, until somebody undoes it"),
    ("1", "1 hour"),
    ("24", "1 day"),
    ("168", "1 week"),
    ("720", "30 days"),
)


class ExpiryForm(forms.Form):
    """For how long."""

    hours = forms.ChoiceField(choices=_LENGTHS, required=False, label="For how long")

    def expires_at(self) -> datetime | None:
        """Return when it ends by itself; None: never."""
        hours = self.cleaned_data.get("hours")
        return timezone.now() + timedelta(hours=int(hours)) if hours else None


class BanForm(ExpiryForm):
    field_order = ("reason", "hours")
    reason = forms.CharField(
        max_length=300,
        label="Reason",
        help_text="Shown to the person who tries to log in, and kept in the audit log.",
    )


class BarForm(ExpiryForm):
    field_order = ("reason", "hours")
    reason = forms.CharField(
        max_length=300,
        label="Reason",
        help_text="Shown to the person's trainers, and kept in the audit log.",
    )


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=200, label="Reason", help_text="Kept in the audit log.")


class PeerReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=200, label="Reason", help_text="Kept in the audit log, with your name."
    )


class MessageForm(forms.Form):
    text = forms.CharField(
        max_length=500,
        label="Message",
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="At most 500 characters of plain text; line breaks become blanks.",
    )


class PeersForm(forms.Form):
    """Which peers to show."""

    q = forms.CharField(
        max_length=100,
        required=False,
        label="Search",
        widget=forms.TextInput(attrs={"placeholder": "account, device, hardware, peer id"}),
    )
    role = forms.ChoiceField(
        required=False,
        label="Role",
        choices=[("", "All"), *((role.value, role.value.capitalize()) for role in Role)],
    )
    state = forms.ChoiceField(
        required=False,
        label="State",
        choices=(
            ("", "All"),
            ("here", "Heard lately"),
            ("silent", "Silent"),
            ("paused", "Paused here"),
            ("held", "Held back"),
            ("out", "Shut out"),
        ),
    )


class RoleForm(forms.Form):
    """Whom, and what as."""

    username = forms.CharField(max_length=150, label="Username")
    part = forms.ChoiceField(
        label="Role",
        initial=RunMember.Part.MODERATOR,
        choices=[(part.value, part.value.capitalize()) for part in RunMember.Part],
    )
    reason = forms.CharField(
        max_length=200, required=False, label="Reason", help_text="Kept in the audit log."
    )


class JoinDecisionForm(forms.Form):
    seen = forms.CharField(
        required=False, empty_value="pending", max_length=20, widget=forms.HiddenInput
    )
    words = forms.CharField(required=False, max_length=1000, widget=forms.HiddenInput)
    decision = forms.ChoiceField(
        label="Decision",
        choices=(("approved", "Approve: they may join"), ("refused", "Refuse")),
    )
    reason = forms.CharField(
        max_length=300,
        required=False,
        label="Reason",
        help_text="Needed to refuse, and shown to the person; kept in the audit log.",
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("decision") == "refused" and not data.get("reason"):
            self.add_error("reason", "Say why.")
        return data


class SuspicionForm(forms.Form):
    decision = forms.ChoiceField(
        label="Decision",
        choices=(
            ("cleared", "Nothing is wrong: confirm what waits"),
            ("upheld", "It is wrong: reject what waits"),
        ),
    )
    reason = forms.CharField(
        max_length=200,
        label="Reason",
        help_text="Kept in the audit log; shown to the person when work is rejected.",
    )


class HarmForm(forms.Form):
    """Whose work, and from when."""

    target = forms.ChoiceField(label="Whose work")
    from_epoch = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        label="From epoch",
        help_text="The first epoch that you no longer trust. Everything from there on is meant.",
    )

    def __init__(self, *args: Any, targets: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["target"].choices = list(targets)  # type: ignore[attr-defined]

    def start_with(self, username: str, from_epoch: str = "") -> None:
        """Choose an account and an epoch before anything was asked."""
        self.initial.setdefault("target", f"user:{username}")
        if from_epoch.isdecimal() and len(from_epoch) < 11:
            self.initial.setdefault("from_epoch", int(from_epoch))


class ConfirmForm(forms.Form):
    """What is to be done, why, and that it is meant."""

    action = forms.ChoiceField(label="Who is shut out")
    rewind = forms.BooleanField(required=False, label="Roll the run back")
    reason = forms.CharField(
        max_length=200,
        label="Reason",
        help_text="Shown to the person, on each corrected entry, and kept in the audit log.",
    )
    is_meant = forms.BooleanField(label="I know that this cannot be undone")

    def __init__(
        self,
        *args: Any,
        actions: Sequence[HarmUndo.Action],
        checkpoint: Checkpoint | None,
        **kwargs: Any,
    ) -> None:
        kwargs["initial"] = {
            "action": actions[min(1, len(actions) - 1)],
            "rewind": checkpoint is not None,
        }
        super().__init__(*args, **kwargs)
        self.state = f"{checkpoint.lineage}-{checkpoint.epoch}" if checkpoint else ""
        """The saved state that the preview names; the page sends it back."""
        self.fields["action"].choices = [(a.value, a.label) for a in actions]  # type: ignore[attr-defined]
        if checkpoint is None:
            self.fields["rewind"].disabled = True

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.data.get("rewind") and self.data.get("state", "") != self.state:
            self.add_error("rewind", "The nearest saved state has changed: look at it again.")
        return data


class AuditForm(forms.Form):
    """Which acts to show."""

    q = forms.CharField(max_length=100, required=False, label="Anywhere")
    actor = forms.CharField(max_length=150, required=False, label="Who")
    code = forms.CharField(max_length=80, required=False, label="Act begins with")
    target = forms.CharField(max_length=100, required=False, label="Object")
    run = forms.SlugField(max_length=60, required=False, label="Run")
    since = forms.DateField(
        required=False, label="From day (UTC)", widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        required=False, label="To day (UTC)", widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, *args: Any, has_run: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not has_run:
            del self.fields["run"]
