"""Compares alerts with the numbers that are published now, after each publication, and asks for corrections.

The audit follows a publication and is not part of it: a failure is logged, and the next recompute tries again. Several
recomputes may end at once, so an audit that was overtaken looks again: it may have asked for what newer numbers deny.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaException

from batch_layer.alerts.alert_log import AlertLog, AuditTable, EmittedAlerts, LastAudit
from batch_layer.alerts.archived_signs import ArchivedSigns
from batch_layer.alerts.corrected_facts import CorrectedFacts, LedgerCauses
from batch_layer.alerts.published_cells import PublishedCells
from batch_layer.context import BatchContext
from batch_layer.failures import UNEXPECTED_DATA, translated_failures
from batch_layer.progress import Steps
from batch_layer.run import read_manifest
from master_dataset.cassandra_tables import ALERTS_UNEXPLAINED, AlarmTable
from master_dataset.errors import GalateaError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.registry.rule_versions import RuleVersions, VersionRow
from views.alerts.alert import Alert
from views.alerts.audit import Audit, RuleKey, retracted_silences
from views.alerts.audit_facts import AuditScope
from views.alerts.rule import Level, Rule
from views.alerts.rule_history import RuleHistory, StoredVersion, decode_rule
from views.control.publication import PointerRow, Publication
from views.core.cut import UNIX_EPOCH

if TYPE_CHECKING:
    from cassandra.cluster import Session

RELAY_TIMEOUT = timedelta(seconds=30)
"""It is ahead of the archive, unless it is stopped."""
_BEFORE = timedelta(hours=27)
"""So long before a window that is looked at one may begin of which the log is read."""
_DAY = timedelta(days=1)
_WEEK = timedelta(days=8)
_MS = timedelta(milliseconds=1)
_TRIES = 5

log = structlog.get_logger()


@dataclass(frozen=True)
class AlertAuditor:
    """Audits the alerts of one deployment."""

    context: BatchContext

    @property
    def _session(self) -> "Session":
        return self.context.session

    def catch_up(self, progress: Steps) -> None:
        """Look at alerts by what is published now, unless that was done.

        It follows a publication and is done without it. So what goes wrong is logged, and the next rebuild tries again.
        """
        try:
            with translated_failures("ID"):
                self._catch_up(progress)
        except (GalateaError, KafkaException) as error:
            log.warning("alerts.audit_put_off", why=str(error))
        except (
            UNEXPECTED_DATA
        ) as error:  # it is done after the switch: the rebuild must not fail, and be tried again, for it
            log.exception("alerts.audit_put_off", why=repr(error))

    def _catch_up(self, progress: Steps) -> None:
        audited, pointer = AuditTable(self._session), PointerRow(self._session)
        since, is_overtaken = audited.read().publication, False
        for _ in range(_TRIES):  # several rebuilds may end at once
            seen, now = audited.read(), pointer.read().publication
            rows = list(RuleVersions(self._session, timedelta()).read())
            # Who was overtaken may have asked for what newer numbers deny, and nobody else has seen that.
            if seen.publication == now and not is_overtaken and not self._is_more_asked(seen, rows):
                return
            base, found = pointer.publication(min(since, seen.publication)), pointer.publication(now)
            if found is None:
                return
            told, asked = self._looked(seen, rows, base, found, progress)
            is_overtaken = not audited.move(seen.publication, LastAudit(now, asked), told)
            log.info("alerts.audited", publication=now, overtaken=is_overtaken, **told)

    def _is_more_asked(self, seen: LastAudit, rows: Sequence[VersionRow]) -> bool:
        """Whether somebody who was overtaken then has ended before it could look again."""
        if not _are_audited(_rules(rows)):
            return False
        topics = AlertLog(self.context.bootstrap)
        return EmittedAlerts(topics, seen.request_positions, topics.request_ends()).has_foreign_requests(
            seen.publication
        )

    def _looked(
        self,
        seen: LastAudit,
        rows: Sequence[VersionRow],
        base: Publication | None,
        found: Publication,
        progress: Steps,
    ) -> tuple[Mapping[str, int], Mapping[int, int]]:
        """What came of it, and how far requests were read."""
        rules, asked = _rules(rows), seen.request_positions
        corrections: Sequence[Alert] = []
        topics = AlertLog(self.context.bootstrap)
        if _are_audited(rules):
            self._wait_for_relay(topics, found.cut, progress)
            progress.step(0, 0, "alerts")
            asked = topics.request_ends()
            corrections = self._corrections(
                EmittedAlerts(topics, seen.request_positions, asked), rows, rules, base, found
            )
        failpoint(Failpoint.REBUILD_JUDGED)
        told = _counted(corrections)
        if told["unexplained"]:  # before they are asked for: whoever looks again finds nothing left to ask for
            detail = f"{told['unexplained']} corrections of alerts have no explanation."
            place = f"publication {found.number}"
            AlarmTable(self._session).notice(ALERTS_UNEXPLAINED, datetime.now(UTC), place, detail)
        if corrections:
            topics.request(corrections)
        failpoint(Failpoint.REBUILD_ALERTS)
        return told, asked

    def _wait_for_relay(self, topics: AlertLog, cut: datetime, progress: Steps) -> None:
        """Until the log of alerts has all that rests on what was received before the cut. CutNotReachedError."""
        progress.step(0, 0, f"alerts are told up to {cut:%H:%M:%S} UTC")
        fence = self.context.fence
        marked = fence.mark(cut)
        fence.wait(marked, lambda: topics.processor_positions(list(marked.offsets)), "alerts", RELAY_TIMEOUT)

    def _corrections(
        self,
        alerts: EmittedAlerts,
        rows: Sequence[VersionRow],
        rules: Mapping[RuleKey, Rule],
        base: Publication | None,
        found: Publication,
    ) -> Sequence[Alert]:
        context, session, horizons = self.context, self._session, self.context.horizons
        since = min(base.cut, found.cut) if base else UNIX_EPOCH
        # What was told of older windows the topic may have forgotten.
        oldest = max(datetime.now(UTC), found.cut) - context.retention + _DAY
        bounds = AuditScope(
            found.number,
            _ms(since),
            _ms(found.cut),
            _ms(oldest),
            horizons.grace // _MS,
            horizons.fresh // _MS,
            horizons.kept // _MS,
        )
        before = read_manifest(session, base.manifest) if base else {}
        after = read_manifest(session, found.manifest)
        facts = CorrectedFacts(
            PublishedCells(session, before, after, since, (oldest - _WEEK).date()),
            LedgerCauses(session, (base.number if base else 0) + 1, found.number),
            ArchivedSigns(context.masters_of(found), found.cut, context.partitions),
            since,
            context.oldest,
        )
        told = alerts.statuses(_ms(oldest - _BEFORE))
        book = RuleHistory(
            [StoredVersion(_ms(row.effective_at), row.kind, row.id, row.number, row.body) for row in rows], 0
        )
        audit = Audit(book, rules, _noted(rows), facts, bounds, told, alerts.unseen)
        return [*audit.corrections(), *retracted_silences(rules, facts, bounds, told)]


def _rules(rows: Sequence[VersionRow]) -> dict[RuleKey, Rule]:
    found: dict[RuleKey, Rule] = {}
    for row in rows:
        if row.kind == "rule" and (rule := decode_rule(row.id, row.number, row.body)) is not None:
            found[rule.tenant, rule.id, row.number] = rule
    return found


def _are_audited(rules: Mapping[RuleKey, Rule]) -> bool:
    """Whether any of them is looked at after a publication."""
    return any(not isinstance(rule, Level) for rule in rules.values())


def _noted(rows: Sequence[VersionRow]) -> dict[str, int]:
    """Since when the log has known each store."""
    found: dict[str, int] = {}
    for row in rows:
        if row.kind == "store":
            found[row.id] = min(found.get(row.id, _ms(row.effective_at)), _ms(row.effective_at))
    return found


def _counted(corrections: Sequence[Alert]) -> Mapping[str, int]:
    kinds = Counter("late" if each.kind == "raised" else each.kind for each in corrections)
    unexplained = sum(each.cause == "unexplained" for each in corrections)
    return {"retracted": kinds["retracted"], "late": kinds["late"], "unexplained": unexplained}


def _ms(at: datetime) -> int:
    return (at - UNIX_EPOCH) // _MS
