//! Finds the events that are worth a notification, each once.

use rejoin_core::EventBody;
use rejoin_store::{Delivery, DeliveryResult, EventRow, NewDelivery, Read, StoredTurn};
use serde::Serialize;
use uuid::Uuid;

use crate::clock::rfc3339;
use crate::error::Result;
use crate::finish::took_ms;
use crate::request::TurnRequest;
use crate::{Hub, TurnView};

const WATERMARK: &str = "notify";
const PAGE: i64 = 500;
/// A delivery that was taken but not finished is retried after this time.
const IN_HAND: i64 = 60_000_000;
/// Delays between tries, in microseconds.
const WAITS: [i64; 6] = [
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
    600_000_000,
    3_600_000_000,
];

/// Selection of notifications.
#[derive(Debug, Clone, Default)]
pub struct NotifyRules {
    /// `waiting`, `failed`, `reseeded`, `succeeded`, `cancelled`, `lost`, `done`.
    pub on: Vec<String>,
    /// Minimum duration of a succeeded turn to count as `done`.
    pub done_after: i64,
    /// `webhook`, `command`.
    pub targets: Vec<String>,
}

/// A line of the log of deliveries.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    pub id: String,
    pub turn_id: String,
    pub kind: String,
    pub target: String,
    /// `pending`, `sent` or `failed`.
    pub state: String,
    pub tries: i64,
    pub error: Option<String>,
    pub created_at: String,
    pub sent_at: Option<String>,
}

/// Content of a notification.
#[derive(Debug, Clone, Serialize)]
pub struct Notification {
    pub id: String,
    /// `turn.waiting`, `turn.failed`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub at: String,
    pub turn: TurnView,
}

impl Hub {
    /// Starts notifications at the newest event; earlier events are not reported. Call it before
    /// the first event that must be reported can happen.
    pub async fn notify_from_now(&self) -> Result<()> {
        let mut read = self.store.read().await?;
        if read.deliveries().watermark(WATERMARK).await?.is_some() {
            return Ok(());
        }
        let newest = read.events().last().await?;
        drop(read);
        let mut tx = self.store.begin().await?;
        // Does nothing if another process was faster.
        tx.deliveries()
            .move_watermark(WATERMARK, None, newest)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Reads the events since the last call and stores the deliveries for them. Returns true if
    /// there are more events.
    pub async fn find_notifications(&self, rules: &NotifyRules) -> Result<bool> {
        let mut read = self.store.read().await?;
        let Some(from) = read.deliveries().watermark(WATERMARK).await? else {
            return Ok(false);
        };
        let page = read.events().after(from, PAGE).await?;
        let Some(last) = page.last().map(|row| row.seq) else {
            return Ok(false);
        };
        let mut found = vec![];
        for row in &page {
            if let Some(kind) = kind_of(&row.body) {
                found.extend(worth(&mut read, rules, row, kind).await?);
            }
        }
        drop(read);
        let mut tx = self.store.begin().await?;
        // Another process has handled this page.
        if !tx
            .deliveries()
            .move_watermark(WATERMARK, Some(from), last)
            .await?
        {
            return Ok(true);
        }
        let now = self.clock.now();
        for (turn, kind, target) in &found {
            let id = self.clock.turn_id()?.uuid();
            tx.deliveries()
                .add(&NewDelivery {
                    id,
                    turn: *turn,
                    kind,
                    target,
                    now,
                })
                .await?;
        }
        tx.commit().await?;
        Ok(page.len() as i64 == PAGE)
    }

    /// Takes the next due delivery for this process, or returns `None`.
    pub async fn take_delivery(&self) -> Result<Option<(Delivery, Notification)>> {
        let now = self.clock.now();
        let due = self.store.read().await?.deliveries().due(now, 1).await?;
        let Some(delivery) = due.into_iter().next() else {
            return Ok(None);
        };
        let mut tx = self.store.begin().await?;
        if !tx
            .deliveries()
            .claim(delivery.id, delivery.tries, now + IN_HAND)
            .await?
        {
            return Ok(None);
        }
        tx.commit().await?;
        let notification = Notification {
            id: delivery.id.to_string(),
            kind: format!("turn.{}", delivery.kind),
            at: rfc3339(delivery.created_at),
            turn: self.turn_view(delivery.turn).await?,
        };
        Ok(Some((delivery, notification)))
    }

    /// Records the result of a delivery. A failed one is retried a few times.
    pub async fn delivered(&self, delivery: &Delivery, outcome: Result<(), String>) -> Result<()> {
        let now = self.clock.now();
        let wait = usize::try_from(delivery.tries)
            .ok()
            .and_then(|n| WAITS.get(n));
        let tried = match (&outcome, wait) {
            (Ok(()), _) => DeliveryResult::Sent,
            (Err(why), Some(wait)) => DeliveryResult::Later(now + wait, why),
            (Err(why), None) => DeliveryResult::Failed(why),
        };
        let mut tx = self.store.begin().await?;
        tx.deliveries()
            .record_result(delivery.id, &tried, now)
            .await?;
        Ok(tx.commit().await?)
    }

    pub async fn delivery_views(&self, limit: i64) -> Result<Vec<DeliveryView>> {
        let mut read = self.store.read().await?;
        let found = read
            .deliveries()
            .of_namespace(&self.namespace, limit.clamp(1, 1000))
            .await?;
        Ok(found.into_iter().map(view).collect())
    }
}

fn view(delivery: Delivery) -> DeliveryView {
    let text = |id: Uuid| id.hyphenated().to_string();
    DeliveryView {
        id: text(delivery.id),
        turn_id: delivery.turn.to_string(),
        kind: delivery.kind,
        target: delivery.target,
        state: delivery.state,
        tries: delivery.tries,
        error: delivery.error,
        created_at: rfc3339(delivery.created_at),
        sent_at: delivery.sent_at.map(rfc3339),
    }
}

/// Returns the kind of notification that an event may cause.
fn kind_of(body: &EventBody) -> Option<String> {
    match body {
        EventBody::Question { .. } | EventBody::Approval { .. } => Some("waiting".into()),
        EventBody::TurnEnded { status, .. } => Some(status.clone()),
        EventBody::Escalation { decision, .. } => match decision.as_str() {
            "climbed" => Some("escalated".into()),
            "refused" => Some("refused".into()),
            "waiting" => Some("waiting".into()),
            _ => None,
        },
        EventBody::TurnDecided {
            verdict, reason, ..
        } if verdict == "reseeded" && reason.as_deref() != Some("first_turn") => {
            Some("reseeded".into())
        }
        EventBody::TurnAccepted { .. }
        | EventBody::TurnDecided { .. }
        | EventBody::TurnStarted { .. }
        | EventBody::TextDelta { .. }
        | EventBody::Text { .. }
        | EventBody::Thinking { .. }
        | EventBody::ToolCall { .. }
        | EventBody::ToolResult { .. }
        | EventBody::FileChanged { .. }
        | EventBody::Answered { .. }
        | EventBody::Todo { .. }
        | EventBody::Usage { .. }
        | EventBody::Compacted { .. }
        | EventBody::Notice { .. }
        | EventBody::HistoryChanged { .. }
        | EventBody::ConversationCreated { .. }
        | EventBody::ConversationChanged { .. }
        | EventBody::ConversationDeleted {}
        | EventBody::Raw { .. } => None,
    }
}

/// Returns the deliveries for an event: turn, kind and target.
async fn worth(
    read: &mut Read,
    rules: &NotifyRules,
    row: &EventRow,
    kind: String,
) -> Result<Vec<(rejoin_core::TurnId, String, String)>> {
    let Some(turn) = read.turns().get(row.turn).await? else {
        return Ok(vec![]);
    };
    // A question without a waiting turn was denied at once, and its event shows that.
    let asked_in_vain = kind == "waiting" && read.questions().of(turn.id).await?.is_empty();
    if asked_in_vain {
        return Ok(vec![]);
    }
    let wanted = |kind: &str| rules.on.iter().any(|on| on == kind);
    let mut found = vec![];
    let told_as = if wanted(&kind) {
        Some(kind.clone())
    } else if kind == "succeeded" && wanted("done") && took(&turn) >= rules.done_after {
        Some("done".to_owned())
    } else {
        None
    };
    if let Some(told_as) = told_as {
        found.extend(
            rules
                .targets
                .iter()
                .map(|to| (turn.id, told_as.clone(), to.clone())),
        );
    }
    let request: Option<TurnRequest> = serde_json::from_value(turn.request.clone()).ok();
    if let Some(url) = request.and_then(|request| request.notify_url) {
        found.push((turn.id, kind, url));
    }
    Ok(found)
}

/// Returns the duration of a turn, in microseconds.
fn took(turn: &StoredTurn) -> i64 {
    i64::try_from(took_ms(turn).saturating_mul(1000)).unwrap_or(i64::MAX)
}
