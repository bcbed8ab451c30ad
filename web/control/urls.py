"""Addresses of the organiser's desk, under /control/."""

from django.urls import path

from web.control import (
    audit,
    bars,
    members,
    peeracts,
    peers,
    people,
    runs,
    suspicions,
    undo,
    workers,
)

app_name = "control"
urlpatterns = [
    path("", runs.runs_page, name="runs"),
    path("runs/<slug:slug>/", runs.run_page, name="run"),
    path("runs/<slug:slug>/moves/<slug:event>/", runs.run_move, name="move"),
    path("runs/<slug:slug>/workers/", workers.workers_fragment, name="workers"),
    path("runs/<slug:slug>/workers/launch/", workers.workers_launch, name="workers_launch"),
    path("runs/<slug:slug>/workers/<str:name>/", workers.worker_page, name="worker"),
    path("runs/<slug:slug>/workers/<str:name>/now/", workers.worker_fragment, name="worker_now"),
    path("runs/<slug:slug>/workers/<str:name>/start/", workers.worker_start, name="worker_start"),
    path("runs/<slug:slug>/workers/<str:name>/stop/", workers.worker_stop, name="worker_stop"),
    path("runs/<slug:slug>/undo/", undo.undo_page, name="undo"),
    path("runs/<slug:slug>/undo/<slug:public_id>/", undo.undone_page, name="undone"),
    path("runs/<slug:slug>/undo/<slug:public_id>/now/", undo.undone_fragment, name="undone_now"),
    path("runs/<slug:slug>/suspicions/", suspicions.suspicions_page, name="suspicions"),
    path(
        "runs/<slug:slug>/suspicions/<int:suspicion_id>/",
        suspicions.suspicion_page,
        name="suspicion",
    ),
    path("runs/<slug:slug>/revocations/", bars.revocations_fragment, name="revocations"),
    path("runs/<slug:slug>/people/<str:username>/bar/", bars.person_bar, name="person_bar"),
    path("runs/<slug:slug>/people/<str:username>/unbar/", bars.person_unbar, name="person_unbar"),
    path("runs/<slug:slug>/peers/", peers.peers_page, name="peers"),
    path("runs/<slug:slug>/peers/<slug:peer>/", peers.peer_page, name="peer"),
    path("runs/<slug:slug>/peers/<slug:peer>/<slug:act>/", peeracts.peer_act, name="peer_act"),
    path(
        "runs/<slug:slug>/devices/<slug:public_id>/unbar/",
        peeracts.device_unbar,
        name="device_unbar",
    ),
    path("queue/", members.queue_page, name="queue"),
    path("runs/<slug:slug>/roles/", members.roles_page, name="roles"),
    path("runs/<slug:slug>/roles/give/", members.role_give, name="role_give"),
    path("runs/<slug:slug>/roles/<str:username>/take/", members.role_take, name="role_take"),
    path("people/", people.people_page, name="people"),
    path("people/<str:username>/ban/", people.person_ban, name="person_ban"),
    path("people/<str:username>/unban/", people.person_unban, name="person_unban"),
    path("audit/", audit.audit_page, name="audit"),
    path("audit/export/", audit.audit_export, name="audit_export"),
    path("runs/<slug:slug>/audit/", audit.run_audit_page, name="run_audit"),
    path("runs/<slug:slug>/audit/export/", audit.run_audit_export, name="run_audit_export"),
]
