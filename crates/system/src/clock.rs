//! The clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 (UTC), for records. Durations are measured with `std::time::Instant`.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
