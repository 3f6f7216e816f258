//! What a result says of the component that gave it.

use sifaka_core::ErrorKind;

/// What a result says of a component's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answered, be it with an error of ours: counts as a success for the breaker.
    Well,
    /// It is down, stuck or talks nonsense: counts as a failure.
    Unwell,
    /// Nothing: the call was ended or never reached it.
    Unknown,
}

/// What an error of this kind says of the component's health, for the circuit breaker.
///
/// | Kind | Health | Why |
/// |---|---|---|
/// | `overloaded`, `timeout`, `unavailable`, `invalid_response`, `retries_exhausted` | unwell | the next caller would most likely see the same |
/// | `rate_limited` | well | it is up and says when to come back; the wait between tries does the rest, while an open circuit would fail every other call as well |
/// | `auth`, `refused`, `content_filtered`, `context_too_long`, `not_found`, `conflict` | well | an answer, if not the wanted one, and about this request alone |
/// | `invalid_input`, `configuration`, `unsupported`, `cancelled`, `deadline_exceeded`, `budget_exhausted`, `circuit_open`, `corrupt`, `storage`, `internal` | unknown | raised on our side, often before anything was sent |
#[must_use]
pub const fn health(kind: ErrorKind) -> Health {
    match kind {
        ErrorKind::Overloaded
        | ErrorKind::Timeout
        | ErrorKind::Unavailable
        | ErrorKind::InvalidResponse
        | ErrorKind::RetriesExhausted => Health::Unwell,
        ErrorKind::RateLimited
        | ErrorKind::Auth
        | ErrorKind::Refused
        | ErrorKind::ContentFiltered
        | ErrorKind::ContextTooLong
        | ErrorKind::NotFound
        | ErrorKind::Conflict => Health::Well,
        _ => Health::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_succeed_later_is_unwell_except_a_full_quota() {
        for kind in ErrorKind::ALL.iter().copied().filter(|kind| kind.is_retryable()) {
            let expected =
                if kind == ErrorKind::RateLimited { Health::Well } else { Health::Unwell };
            assert_eq!(health(kind), expected, "{kind}");
        }
    }

    #[test]
    fn our_own_mistakes_say_nothing() {
        for kind in [ErrorKind::InvalidInput, ErrorKind::Cancelled, ErrorKind::BudgetExhausted] {
            assert_eq!(health(kind), Health::Unknown, "{kind}");
        }
    }
}
