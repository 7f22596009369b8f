//! What is done about a fault.

use std::time::Duration;

use crate::{
    ModelError,
    fault::{Fault, FaultKind},
    limits::{CONNECT_ATTEMPTS, RETRY_AFTER_CAP},
    settings::RetryPolicy,
};

/// How long to wait before the next attempt; `None` when there is to be none. `attempt` is the number of the one that failed, from 1.
pub(crate) fn wait(policy: &RetryPolicy, attempt: u32, fault: &Fault) -> Option<Duration> {
    let attempts = match fault.kind {
        FaultKind::Transient => policy.attempts,
        FaultKind::Unreachable => policy.attempts.min(CONNECT_ATTEMPTS),
        FaultKind::Context | FaultKind::Auth | FaultKind::Refused | FaultKind::Replay => return None,
    };
    if attempt >= attempts {
        return None;
    }
    let own = policy.delay(attempt);
    // A provider that says 0 is taken at its word only as far as the schedule goes: it says so while it is overloaded, too.
    Some(fault.retry_after.map_or(own, |asked| asked.min(RETRY_AFTER_CAP).max(own.min(policy.first))))
}

/// The error after the last attempt. `key` says where the key came from.
pub(crate) fn give_up(fault: Fault, model: &str, attempts: u32, key: &str) -> ModelError {
    let model = model.to_owned();
    match fault.kind {
        FaultKind::Transient | FaultKind::Unreachable => {
            ModelError::Unavailable { model, attempts, message: fault.message }
        }
        FaultKind::Context => ModelError::ContextTooLong { model, message: fault.message },
        FaultKind::Auth => ModelError::Auth(format!("{model} did not accept {key}: {}", fault.message)),
        FaultKind::Refused => ModelError::Refused { model, message: fault.message },
        FaultKind::Replay => ModelError::Script(fault.message),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_providers_wish_goes_before_the_schedule_and_is_capped() {
        let policy = RetryPolicy::default();
        let asked =
            |seconds| Fault { retry_after: Some(Duration::from_secs(seconds)), ..Fault::transient("x") };
        assert_eq!(wait(&policy, 1, &Fault::transient("x")), Some(Duration::from_millis(500)));
        assert_eq!(wait(&policy, 1, &asked(7)), Some(Duration::from_secs(7)));
        assert_eq!(wait(&policy, 5, &asked(1)), Some(Duration::from_secs(1)));
        assert_eq!(wait(&policy, 1, &asked(0)), Some(Duration::from_millis(500)));
        assert_eq!(wait(&policy, 1, &asked(86_400)), Some(RETRY_AFTER_CAP));
        assert_eq!(wait(&policy, policy.attempts, &asked(1)), None);
        assert_eq!(wait(&policy, 3, &Fault::new(FaultKind::Unreachable, "x")), None);
        assert_eq!(wait(&policy, 1, &Fault::new(FaultKind::Refused, "x")), None);
    }
}
