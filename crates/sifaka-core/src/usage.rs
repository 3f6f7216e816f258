//! What a call consumed.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Money, in US dollars, exact to a billionth.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From whole and fractional dollars; negative and non-finite amounts are nothing.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to the range of u64 before; a float cast saturates"
        )]
        let nanos = (dollars.max(0.0) * 1e9).round() as u64;
        Self(nanos)
    }

    /// From billionths of a dollar.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// In billionths of a dollar.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// In dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display; sums are kept in integers")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum, at most the largest amount there is.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.6}", self.dollars())
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::from_dollars)
    }
}

/// Calls, tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Calls to a model.
    pub calls: u64,
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// Of the tokens that went in, how many the provider had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Of the tokens that came out, how many were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What it cost, as far as prices were known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Whether any token count is our estimate rather than the provider's figure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// Tokens in and out together.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Whether nothing was consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Add for Usage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cost: match (self.cost, other.cost) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            },
            estimated: self.estimated || other.estimated,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_price_is_unknown_and_not_zero() {
        let unknown = Usage { calls: 1, ..Usage::default() };
        assert_eq!((unknown + unknown).cost, None);
        let priced = Usage { cost: Some(Cost::from_dollars(0.5)), ..unknown };
        assert_eq!((unknown + priced).cost, Some(Cost::from_dollars(0.5)));
    }

    #[test]
    fn odd_amounts_of_money_are_nothing() {
        assert_eq!(Cost::from_dollars(-1.0), Cost::ZERO);
        assert_eq!(Cost::from_dollars(f64::NAN), Cost::ZERO);
        assert_eq!(Cost::from_dollars(0.000_15).to_string(), "$0.000150");
    }
}
