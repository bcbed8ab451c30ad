"""Addresses of the pages for visitors and volunteers."""

from django.urls import path

from web.pages import (
    account,
    devices,
    history,
    home,
    join,
    leaderboard,
    profile,
    runs,
    site,
    tables,
    why,
)

app_name = "pages"
urlpatterns = [
    path("", home.home, name="home"),
    path("runs/", home.runs_redirect, name="runs"),
    path("runs/<slug:slug>/", runs.run_page, name="run"),
    path("runs/<slug:slug>/strip/", runs.strip_fragment, name="strip"),
    path("runs/<slug:slug>/board/", runs.board_fragment, name="board"),
    path("runs/<slug:slug>/series.csv", tables.series_csv, name="series_csv"),
    path("runs/<slug:slug>/history/", history.history_page, name="history"),
    path("runs/<slug:slug>/history/part/", history.history_part, name="history_part"),
    path("runs/<slug:slug>/history/moment/", history.moment_part, name="history_moment"),
    path("runs/<slug:slug>/history/<str:kind>.csv", tables.history_csv, name="history_csv"),
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
    path("account/tokens/", account.token_create, name="token_create"),
    path("account/tokens/<int:token_id>/revoke/", account.token_end, name="token_revoke"),
    path("users/<str:username>/", profile.profile_page, name="profile"),
    path("trust/", site.trust, name="trust"),
    path("robots.txt", site.robots, name="robots"),
    path("favicon.ico", site.favicon, name="favicon"),
]
