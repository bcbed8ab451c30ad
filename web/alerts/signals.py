"""Who gets alerts by mail without asking: founders those of their run, the staff the site's."""

from typing import Any

from django.db.models.signals import post_save, pre_save
from django.dispatch import receiver

from web.accounts.models import User
from web.alerts.models import AlertMail
from web.runs.models import Run
from web.runs.signals import run_created


@receiver(run_created, dispatch_uid="mail-alerts-to-founders")
def founder_subscribe(sender: type[Run], run: Run, **rest: Any) -> None:
    """Mail the run's alerts to whoever made it; it ends at the desk."""
    if run.organiser.email:
        AlertMail.objects.get_or_create(run=run, user=run.organiser)


@receiver(pre_save, sender=User, dispatch_uid="staff-before")
def staff_note(sender: type[User], instance: User, **rest: Any) -> None:
    """Note whether the account belongs to the staff already: who ended the mail is left alone."""
    fields = rest.get("update_fields")
    if instance.is_staff and (fields is None or "is_staff" in fields):
        instance._is_new_staff = not User.objects.filter(pk=instance.pk, is_staff=True).exists()  # type: ignore[attr-defined]


@receiver(post_save, sender=User, dispatch_uid="mail-alerts-to-staff")
def staff_subscribe(sender: type[User], instance: User, raw: bool, **rest: Any) -> None:
    """Mail the site's alerts to whoever becomes staff; it ends at the desk."""
    is_new = instance.__dict__.pop("_is_new_staff", False)
    if is_new and instance.email and not raw:
        AlertMail.objects.get_or_create(run=None, user=instance)
