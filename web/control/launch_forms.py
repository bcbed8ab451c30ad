"""Forms of managed workers and their nodes."""

import math
from collections.abc import Sequence
from typing import Any

from django import forms

from web.workers.launching import Order
from web.workers.models import ManagedWorker, WorkerNode, node_here
from web.workers.services import Placement


class LaunchForm(forms.Form):
    """What is to be launched, where, and within which bounds."""

    kind = forms.ChoiceField(
        label="What",
        required=False,
        choices=(
            ("trainer", "Trainers"),
            ("auxiliary", "Auxiliary peers"),
            ("coordinator", "The coordinator"),
        ),
    )
    count = forms.IntegerField(min_value=1, max_value=8, initial=1, label="How many")
    node = forms.ChoiceField(label="On node", required=False)
    device = forms.ChoiceField(label="Device", required=False)
    threads = forms.IntegerField(
        min_value=1, max_value=256, initial=1, required=False, label="CPU threads each"
    )
    memory_mb = forms.IntegerField(
        min_value=256, max_value=10_000_000, required=False, label="Memory each, MiB"
    )
    hours = forms.FloatField(min_value=0.01, max_value=8760, required=False, label="For hours")

    def __init__(self, *args: Any, nodes: Sequence[WorkerNode] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        here = node_here()
        names = [(node.name, f"{node.name} ({node.host})") for node in nodes]
        if here not in [name for name, _ in names]:
            names.insert(0, (here, here))
        gpus = {gpu["device"]: gpu["name"] for node in nodes for gpu in node.devices}
        devices = [("", "What it finds"), ("cpu", "CPU only")]
        devices += [(device, f"{device} ({name})") for device, name in sorted(gpus.items())]
        self.fields["node"].choices = names  # type: ignore[attr-defined]
        self.fields["node"].initial = here
        self.fields["device"].choices = devices  # type: ignore[attr-defined]

    def clean_hours(self) -> float | None:
        hours: float | None = self.cleaned_data["hours"]
        if hours is not None and not math.isfinite(hours):
            raise forms.ValidationError("Give a number of hours.")
        return hours

    def order(self) -> Order:
        """Return what was asked for; what was left out is as it was offered."""
        data = self.cleaned_data
        placement = Placement(
            node=data["node"] or node_here(),
            device=data["device"],
            threads=data["threads"] or 1,
            memory_mb=data["memory_mb"],
            hours=data["hours"],
        )
        kind = ManagedWorker.Kind(data["kind"] or ManagedWorker.Kind.TRAINER)
        return Order(kind, data["count"], placement)

    def problem(self) -> str:
        """Return the first thing that is wrong, as a sentence."""
        if "count" in self.errors:
            return "One to eight trainers or auxiliary peers can be launched at a time."
        name, problems = next(iter(self.errors.items()))
        field = self.fields.get(name)  # none: of the whole order, such as that there is no room
        return f"{field.label}: {problems[0]}" if field else str(problems[0])


class NodeLimitsForm(forms.Form):
    """How much of a node managed workers may take; empty: no limit."""

    processes = forms.IntegerField(min_value=0, max_value=1000, required=False, label="Processes")
    threads = forms.IntegerField(min_value=0, max_value=10_000, required=False, label="CPU threads")
    memory_mb = forms.IntegerField(
        min_value=0, max_value=100_000_000, required=False, label="Memory, MiB"
    )
