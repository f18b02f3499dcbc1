//! The line to the shim: news from it, and orders to it.

use std::time::Duration;

use crate::shim::Order;
use crate::shim_link::{News, ShimLink};

/// How soon a shim that does not listen (yet, or any more) is looked at again, at first and later.
pub(super) const SOON: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(40);
/// Should news ever get lost, they are late by no more than this.
const SAFETY: Duration = Duration::from_secs(1);

/// Waits until there may be something new. The shim says so itself: the kernel takes ten
/// milliseconds to give up a watch on a folder, at the end of every turn.
pub(super) async fn news(shim: &mut Option<ShimLink>, pause: &mut Duration) {
    match shim {
        Some(link) => {
            if matches!(
                tokio::time::timeout(SAFETY, link.news()).await,
                Ok(News::HungUp)
            ) {
                *shim = None;
            }
            *pause = SOON;
        }
        None => {
            tokio::time::sleep(*pause).await;
            *pause = (*pause * 2).min(LATER);
        }
    }
}

/// True if it was heard. A shim that does not listen any more is about to end.
pub(super) async fn tell(shim: &mut Option<ShimLink>, order: Order) -> bool {
    let Some(link) = shim else { return false };
    let heard = link.order(order).await.is_ok();
    if !heard {
        *shim = None;
    }
    heard
}
