"""Addresses of the pages for visitors and volunteers."""

from django.urls import path

from web.pages import (
    account,
    configs,
    devices,
    evaluations,
    home,
    join,
    leaderboard,
    peers,
    profile,
    runs,
    site,
    why,
)

app_name = "pages"
urlpatterns = [
    path("", home.home, name="home"),
    path("runs/", home.runs_redirect, name="runs"),
    path("runs/<slug:slug>/", runs.run_page, name="run"),
    path("runs/<slug:slug>/strip/", runs.strip_fragment, name="strip"),
    path("runs/<slug:slug>/board/", runs.board_fragment, name="board"),
    path("runs/<slug:slug>/peers/<str:key>/", peers.peer_page, name="peer"),
    path("runs/<slug:slug>/events/", runs.events_page, name="events"),
    path("runs/<slug:slug>/checkpoints/", runs.checkpoints_page, name="checkpoints"),
    path("runs/<slug:slug>/countries/", runs.countries_page, name="countries"),
    path("runs/<slug:slug>/config/", configs.config_page, name="config"),
    path("runs/<slug:slug>/series.csv", runs.series_csv, name="series_csv"),
    path("runs/<slug:slug>/evaluations/", evaluations.evaluations_page, name="evaluations"),
    path("runs/<slug:slug>/leaderboard/", leaderboard.leaderboard_page, name="leaderboard"),
    path("runs/<slug:slug>/why/", why.why_page, name="why"),
    path("runs/<slug:slug>/join/", join.join_page, name="join"),
    path("runs/<slug:slug>/join/waiting/", join.waiting_fragment, name="join_waiting"),
    path("download/<str:name>", join.download, name="download"),
    path("devices/", devices.devices_page, name="devices"),
    path("devices/<str:public_id>/rename/", devices.rename, name="device_rename"),
    path("devices/<str:public_id>/revoke/", devices.revoke, name="device_revoke"),
    path("devices/<str:public_id>/key/", devices.replace_key, name="device_replace_key"),
    path("account/", account.account_page, name="account"),
    path("account/profile/", account.profile_update, name="account_profile"),
    path("account/country/", account.country_update, name="account_country"),
    path("account/tokens/", account.token_create, name="token_create"),
    path("account/tokens/<int:token_id>/revoke/", account.token_end, name="token_revoke"),
    path("users/<str:username>/", profile.profile_page, name="profile"),
    path("trust/", site.trust, name="trust"),
    path("robots.txt", site.robots, name="robots"),
    path("favicon.ico", site.favicon, name="favicon"),
]
