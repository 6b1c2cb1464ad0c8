//! Counts as expressions of the number of iterations.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A count that depends on the number of iterations N: `N`, `2N`, `2N+1`, `N-1`, or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = r"^([0-9]+|[0-9]*N([+-][0-9]+)?)$"))]
pub struct Expression {
    factor: u64,
    constant: i64,
}

impl Expression {
    /// Its value; absent if that is negative or too large.
    pub fn at(self, iterations: u64) -> Option<u64> {
        self.factor.checked_mul(iterations)?.checked_add_signed(self.constant)
    }
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse::<i64>().ok()).flatten()
        };
        let parse = || {
            let Some((factor, rest)) = text.split_once('N') else {
                return Some(Expression { factor: 0, constant: number(text)? });
            };
            let factor = if factor.is_empty() { 1 } else { number(factor)?.unsigned_abs() };
            let constant = match (rest.strip_prefix('+'), rest.strip_prefix('-')) {
                (Some(digits), _) => number(digits)?,
                (_, Some(digits)) => -number(digits)?,
                _ if rest.is_empty() => 0,
                _ => return None,
            };
            Some(Expression { factor, constant })
        };
        parse().ok_or_else(|| {
            format!("`{text}` is no count of iterations: write N, 2N, 2N+1, N-1 or a plain number")
        })
    }
}

impl TryFrom<String> for Expression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.to_string()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.factor, self.constant) {
            (0, constant) => write!(f, "{constant}"),
            (1, 0) => write!(f, "N"),
            (1, constant) => write!(f, "N{constant:+}"),
            (factor, 0) => write!(f, "{factor}N"),
            (factor, constant) => write!(f, "{factor}N{constant:+}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_values() {
        for (text, at_ten) in
            [("N", 10), ("2N", 20), ("0", 0), ("7", 7), ("2N+1", 21), ("N-10", 0), ("0N", 0)]
        {
            let expression: Expression = text.parse().unwrap();
            assert_eq!(expression.at(10), Some(at_ten), "{text}");
            let again: Expression = expression.to_string().parse().unwrap();
            assert_eq!(again.at(77), expression.at(77), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "",
            "n",
            "NN",
            "N2",
            "2*N",
            "-1",
            "+1",
            "N+",
            "N+N",
            "N + 1",
            "1.5N",
            "99999999999999999999",
            "Nµ",
        ] {
            assert!(text.parse::<Expression>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_that_cannot_be_counts_are_absent() {
        assert_eq!("N-11".parse::<Expression>().unwrap().at(10), None);
        assert_eq!("2N".parse::<Expression>().unwrap().at(u64::MAX), None);
    }
}
