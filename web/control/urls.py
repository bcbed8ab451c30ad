"""Addresses of the organiser's desk, under /control/."""

from django.urls import path

from web.control import (
    alert_settings,
    alerts,
    bars,
    health,
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
    path("runs/<slug:slug>/alerts/", alerts.run_alerts_page, name="run_alerts"),
    path("runs/<slug:slug>/alerts/settings/", alert_settings.settings_page, name="alert_settings"),
    path("runs/<slug:slug>/alerts/mail/", alert_settings.mail_post, name="alert_mail"),
    path("runs/<slug:slug>/webhooks/", alert_settings.webhook_add_post, name="webhook_add"),
    path(
        "runs/<slug:slug>/webhooks/<slug:public_id>/test/",
        alert_settings.webhook_test_post,
        name="webhook_test",
    ),
    path(
        "runs/<slug:slug>/webhooks/<slug:public_id>/enable/",
        alert_settings.webhook_enable_post,
        name="webhook_enable",
    ),
    path(
        "runs/<slug:slug>/webhooks/<slug:public_id>/delete/",
        alert_settings.webhook_delete_post,
        name="webhook_delete",
    ),
    path("alerts/", alerts.alerts_page, name="alerts"),
    path("alerts/mail/", alerts.site_mail_post, name="site_alert_mail"),
    path("alerts/<slug:public_id>/", alerts.alert_page, name="alert"),
    path(
        "alerts/<slug:public_id>/acknowledge/",
        alerts.alert_acknowledge_post,
        name="alert_acknowledge",
    ),
    path("alerts/<slug:public_id>/mute/", alerts.alert_mute_post, name="alert_mute"),
    path("health/", health.health_page, name="health"),
    path("people/", people.people_page, name="people"),
    path("people/<str:username>/ban/", people.person_ban, name="person_ban"),
    path("people/<str:username>/unban/", people.person_unban, name="person_unban"),
    path("audit/", people.audit_page, name="audit"),
]
