//! A conversation's events as they come.

use std::collections::VecDeque;

use futures::stream;
use tokio::sync::watch;

use super::{readers::Readers, rows};
use crate::{ConversationId, Follow, Result, Sequence, StoredEvent, limits};

struct Follower {
    readers: Readers,
    id: ConversationId,
    /// The last event that was read.
    after: Sequence,
    /// Read and not yet taken; one page at most.
    page: VecDeque<StoredEvent>,
    news: watch::Receiver<Sequence>,
}

/// `news` was subscribed to before this call.
pub(super) fn stream(
    readers: Readers,
    id: ConversationId,
    after: Sequence,
    news: watch::Receiver<Sequence>,
) -> Follow {
    let follower = Follower { readers, id, after, page: VecDeque::new(), news };
    Box::pin(stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        match follower.next().await {
            Ok(event) => Some((Ok(event), Some(follower))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

impl Follower {
    async fn next(&mut self) -> Result<StoredEvent> {
        loop {
            if let Some(event) = self.page.pop_front() {
                return Ok(event);
            }
            // What is appended from here on marks the receiver again, so nothing is missed between reading and waiting.
            self.news.mark_unchanged();
            let (id, after) = (self.id.clone(), self.after);
            let page = self
                .readers
                .run(move |connection| rows::events(connection, &id, after, limits::FOLLOW_PAGE))
                .await?;
            match page.last() {
                Some(last) => {
                    self.after = last.sequence;
                    self.page = page.into();
                }
                None => {
                    if self.news.changed().await.is_err() {
                        // The store is gone; what comes can only come through another process, and nobody looks for it any more.
                        return Err(crate::StoreError::Closed);
                    }
                }
            }
        }
    }
}
