"""After each publication, compares alerts with the published numbers, and requests corrections.

The audit follows a publication and is not part of it: a failure is logged, and the next recompute tries again. Several
recomputes may end at once, so an audit that was overtaken runs again: its requests may contradict newer numbers.
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
from views.core.local_time import ONE_DAY

if TYPE_CHECKING:
    from cassandra.cluster import Session

PROCESSOR_TIMEOUT = timedelta(seconds=30)
"""How long to wait for the alert processor. It is ahead of the archive, unless it is stopped."""
_BEFORE = timedelta(hours=27)
"""How long before an audited window the windows begin whose alerts are read from the log."""
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

    def catch_up(self, steps: Steps) -> None:
        """Audit alerts against the current publication, unless that was done before. A failure is only logged."""
        try:
            with translated_failures("ID"):
                self._catch_up(steps)
        except (GalateaError, KafkaException) as error:
            log.warning("alerts.audit_postponed", error=str(error))
        except UNEXPECTED_DATA as error:  # the publication is done, so the rebuild must not fail
            log.exception("alerts.audit_postponed", error=repr(error))

    def _catch_up(self, steps: Steps) -> None:
        audited, pointer = AuditTable(self._session), PointerRow(self._session)
        since, is_overtaken = audited.read().publication, False
        for _ in range(_TRIES):  # several rebuilds may end at once
            seen, now = audited.read(), pointer.read().publication
            rows = list(RuleVersions(self._session, timedelta()).read())
            # An overtaken audit may have made requests that newer numbers contradict, and no other audit has seen them.
            if seen.publication == now and not is_overtaken and not self._has_unseen_requests(seen, rows):
                return
            base, found = pointer.publication(min(since, seen.publication)), pointer.publication(now)
            if found is None:
                return
            counts, positions = self._audit(seen, rows, base, found, steps)
            is_overtaken = not audited.move(seen.publication, LastAudit(now, positions), counts)
            log.info("alerts.audited", publication=now, overtaken=is_overtaken, **counts)

    def _has_unseen_requests(self, seen: LastAudit, rows: Sequence[VersionRow]) -> bool:
        """Whether an audit that was overtaken has ended before it could audit again."""
        if not _any_audited(_rules(rows)):
            return False
        topics = AlertLog(self.context.kafka, self.context.signatures())
        return EmittedAlerts(topics, seen.request_positions, topics.request_ends()).has_foreign_requests(
            seen.publication
        )

    def _audit(
        self,
        seen: LastAudit,
        rows: Sequence[VersionRow],
        base: Publication | None,
        found: Publication,
        steps: Steps,
    ) -> tuple[Mapping[str, int], Mapping[int, int]]:
        """The number of corrections by kind, and how far requests were read."""
        rules, positions = _rules(rows), seen.request_positions
        corrections: Sequence[Alert] = []
        topics = AlertLog(self.context.kafka, self.context.signatures())
        if _any_audited(rules):
            topics.begin_signing()
            self._wait_for_processor(topics, found.cut, steps)
            steps.step(0, 0, "alerts")
            positions = topics.request_ends()
            corrections = self._corrections(
                EmittedAlerts(topics, seen.request_positions, positions), rows, rules, base, found
            )
        failpoint(Failpoint.REBUILD_JUDGED)
        counts = _counts(corrections)
        if counts["unexplained"]:  # before they are requested: another audit finds nothing left to request
            detail = f"{counts['unexplained']} corrections of alerts have no explanation."
            where = f"publication {found.number}"
            AlarmTable(self._session).notice(ALERTS_UNEXPLAINED, datetime.now(UTC), where, detail)
        if corrections:
            topics.request(corrections)
        failpoint(Failpoint.REBUILD_ALERTS)
        return counts, positions

    def _wait_for_processor(self, topics: AlertLog, cut: datetime, steps: Steps) -> None:
        """Wait until the log has every alert that depends on what was received before the cut. CutNotReachedError."""
        steps.step(0, 0, f"alerts are emitted up to {cut:%H:%M:%S} UTC")
        fence = self.context.fence
        marked = fence.mark(cut)
        fence.wait(marked, lambda: topics.processor_positions(list(marked.offsets)), "alerts", PROCESSOR_TIMEOUT)

    def _corrections(
        self,
        alerts: EmittedAlerts,
        rows: Sequence[VersionRow],
        rules: Mapping[RuleKey, Rule],
        base: Publication | None,
        found: Publication,
    ) -> Sequence[Alert]:
        context, session, timings = self.context, self._session, self.context.timings
        since = min(base.cut, found.cut) if base else UNIX_EPOCH
        # The topic may not have the alerts of older windows any more.
        oldest = max(datetime.now(UTC), found.cut) - context.retention + ONE_DAY
        scope = AuditScope(
            found.number,
            _ms(since),
            _ms(found.cut),
            _ms(oldest),
            timings.grace // _MS,
            timings.fresh // _MS,
            timings.kept // _MS,
        )
        before = read_manifest(session, base.manifest) if base else {}
        after = read_manifest(session, found.manifest)
        facts = CorrectedFacts(
            PublishedCells(session, before, after, since, (oldest - _WEEK).date()),
            LedgerCauses(session, (base.number if base else 0) + 1, found.number),
            ArchivedSigns(context.masters_of(found), found.cut, context.partitions()),
            since,
            context.oldest,
        )
        statuses = alerts.statuses(_ms(oldest - _BEFORE))
        history = RuleHistory(
            [StoredVersion(_ms(row.effective_at), row.kind, row.id, row.number, row.body) for row in rows], 0
        )
        audit = Audit(history, rules, _known_since(rows), facts, scope, statuses, alerts.unseen)
        return [*audit.corrections(), *retracted_silences(rules, facts, scope, statuses)]


def _rules(rows: Sequence[VersionRow]) -> dict[RuleKey, Rule]:
    found: dict[RuleKey, Rule] = {}
    for row in rows:
        if row.kind == "rule" and (rule := decode_rule(row.id, row.number, row.body)) is not None:
            found[rule.tenant, rule.id, row.number] = rule
    return found


def _any_audited(rules: Mapping[RuleKey, Rule]) -> bool:
    """Whether any of the rules is audited after a publication."""
    return any(not isinstance(rule, Level) for rule in rules.values())


def _known_since(rows: Sequence[VersionRow]) -> dict[str, int]:
    """When each store first appeared in the log, in ms since 1970."""
    found: dict[str, int] = {}
    for row in rows:
        if row.kind == "store":
            found[row.id] = min(found.get(row.id, _ms(row.effective_at)), _ms(row.effective_at))
    return found


def _counts(corrections: Sequence[Alert]) -> Mapping[str, int]:
    kinds = Counter("late" if each.kind == "raised" else each.kind for each in corrections)
    unexplained = sum(each.cause == "unexplained" for each in corrections)
    return {"retracted": kinds["retracted"], "late": kinds["late"], "unexplained": unexplained}


def _ms(at: datetime) -> int:
    return (at - UNIX_EPOCH) // _MS
