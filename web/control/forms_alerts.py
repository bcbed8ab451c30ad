"""Forms about alerts."""

from typing import Any

from django import forms
from django.forms import BoundField

from web.alerts.kinds import PATIENCE_MAX, RULES, AlertKind, RuleValues
from web.alerts.rules import RUN_KINDS


class AcknowledgeForm(forms.Form):
    reason = forms.CharField(
        max_length=200,
        label="Who does what",
        help_text="Shown beside the alert, and kept in the audit log.",
    )


class MuteForm(forms.Form):
    hours = forms.ChoiceField(
        label="Tell nobody for",
        choices=(
            ("1", "an hour"),
            ("8", "8 hours"),
            ("24", "a day"),
            ("168", "a week"),
            ("0", "no time: tell again"),
        ),
    )
    reason = forms.CharField(max_length=200, label="Why", help_text="Kept in the audit log.")


class WebhookForm(forms.Form):
    url = forms.CharField(
        max_length=500,
        label="Address",
        help_text="An https:// address that takes a POST of JSON.",
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
    )


class RulesForm(forms.Form):
    """Four fields for each kind; the names are ``<kind>-<field>``."""

    def __init__(self, *args: Any, values: dict[AlertKind, RuleValues], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for kind in RUN_KINDS:
            rule, now = RULES[kind], values[kind]
            low, high = rule.limit_range
            named = f"{rule.title}: "
            self.fields[f"{kind}-is_on"] = forms.BooleanField(
                required=False, initial=now.is_on, label=f"{named}watched"
            )
            self.fields[f"{kind}-limit"] = forms.FloatField(
                min_value=low, max_value=high, initial=now.limit, label=named + rule.limit_text
            )
            for name, words in (("opens", "opens after"), ("closes", "closes after")):
                self.fields[f"{kind}-{name}_seconds"] = forms.IntegerField(
                    min_value=0,
                    max_value=PATIENCE_MAX,
                    initial=getattr(now, f"{name}_seconds"),
                    label=f"{named}{words}, in seconds",
                )
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label

    def rows(self) -> list[dict[str, Any]]:
        """Return the fields by kind, for a table."""
        return [
            {
                "title": RULES[kind].title,
                "limit_text": RULES[kind].limit_text,
                "fields": self._fields(kind),
                "errors": [e for field in self._fields(kind) for e in field.errors],
            }
            for kind in RUN_KINDS
        ]

    def values(self) -> dict[AlertKind, RuleValues]:
        """Return what was chosen."""
        names = ("is_on", "limit", "opens_seconds", "closes_seconds")
        return {
            kind: RuleValues(**{name: self.cleaned_data[f"{kind}-{name}"] for name in names})
            for kind in RUN_KINDS
        }

    def _fields(self, kind: AlertKind) -> list[BoundField]:
        return [
            self[f"{kind}-{name}"] for name in ("is_on", "limit", "opens_seconds", "closes_seconds")
        ]
