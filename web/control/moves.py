"""The moves that an organiser is offered, and what each does, said before it is done. Pure."""

from dataclasses import dataclass

from training.protocol.states import RUN_TRANSITIONS, RunState


@dataclass(frozen=True)
class Move:
    """``event`` as :func:`web.runs.services.run_transition` takes it."""

    event: str
    label: str
    target: RunState
    is_final: bool = False
    """It cannot be undone."""


_MOVES = (
    Move("open", "Open", RunState.OPEN),
    Move("pause", "Pause", RunState.PAUSED),
    Move("finish", "Finish", RunState.FINISHING, is_final=True),
    Move("archive", "Archive", RunState.ARCHIVED, is_final=True),
)


def moves_of(state: RunState) -> list[Move]:
    """Return the moves that are legal from a state."""
    return [move for move in _MOVES if move.target in RUN_TRANSITIONS[state]]


def move_named(event: str, state: RunState) -> Move | None:
    """Return a legal move by its event."""
    return next((move for move in moves_of(state) if move.event == event), None)


def move_effect(
    move: Move, state: RunState, num_trainers: int, heartbeat_seconds: float = 30.0
) -> list[str]:
    """Return what the move will do, in sentences. Trainers hear of it with their heartbeat."""
    who = "1 trainer" if num_trainers == 1 else f"{num_trainers} trainers"
    soon = f"within about {heartbeat_seconds:g} s"
    if move.event == "open":
        if state is RunState.PAUSED:
            return [f"Trainers that wait go on {soon}; nobody joins again."]
        return [
            "Everybody who sees the run can join it from now on.",
            "Managed workers that are wanted start, the coordinator first.",
        ]
    if move.event == "pause":
        return [
            f"{who} will stop computing {soon} and stay connected; their work is kept."
            if num_trainers
            else "Nobody trains now.",
            "Nobody new can join. Counted samples stay counted.",
            "The page says that the run is paused, by whom, until when and why.",
        ]
    if move.event == "finish":
        return [
            f"{who} will leave {soon}, after the micro-step they are in."
            if num_trainers
            else "Nobody trains now.",
            "The run is finished when all have left, or after three minutes.",
            "Checkpoints, history and credit stay. Managed workers of the run stop.",
        ]
    return [
        "The run stays readable at its address. Nothing of it runs any more.",
        "Nobody can join it, and it gets no new config.",
    ]
