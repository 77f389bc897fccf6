//! Numbers: signed, unsigned and double, with exact comparison and mixed arithmetic.
//!
//! JSON does not distinguish `1` from `1.0`, and an author cannot know which of them an agent
//! writes. So numbers are compared by their exact value, and mixed operands are allowed: CEL
//! rejects `1 + 0.5`; here the integer is converted to a double. Two integers give an integer, as
//! in CEL: `1 / 2` is 0.

use std::cmp::Ordering;

use super::tree::Binary;

#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i64),
    Uint(u64),
    Double(f64),
}

/// An arithmetic error.
pub(super) enum ArithmeticError {
    Overflow,
    DivisionByZero,
    /// The operator does not support doubles.
    Decimal,
}

impl Number {
    /// The exact value of an integer.
    fn whole(self) -> Option<i128> {
        match self {
            Number::Int(value) => Some(value.into()),
            Number::Uint(value) => Some(value.into()),
            Number::Double(_) => None,
        }
    }

    /// The nearest double.
    pub(super) fn decimal(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Uint(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// Compares by exact value. `None` if one of them is NaN.
    pub(super) fn compare(self, other: Number) -> Option<Ordering> {
        match (self.whole(), other.whole()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (Some(left), None) => compare_decimal(left, other.decimal()),
            (None, Some(right)) => compare_decimal(right, self.decimal()).map(Ordering::reverse),
            (None, None) => self.decimal().partial_cmp(&other.decimal()),
        }
    }

    /// The value as an integer, if it is one.
    pub(super) fn as_whole(self) -> Option<i128> {
        match self {
            Number::Double(value) if value.fract() == 0.0 && value.abs() < 1e19 => {
                Some(value as i128)
            }
            Number::Double(_) => None,
            Number::Int(_) | Number::Uint(_) => self.whole(),
        }
    }

    pub(super) fn negate(self) -> Result<Number, ArithmeticError> {
        match self {
            Number::Int(value) => value
                .checked_neg()
                .map(Number::Int)
                .ok_or(ArithmeticError::Overflow),
            Number::Uint(value) => 0i64
                .checked_sub_unsigned(value)
                .map(Number::Int)
                .ok_or(ArithmeticError::Overflow),
            Number::Double(value) => Ok(Number::Double(-value)),
        }
    }

    /// Applies an arithmetic operator.
    pub(super) fn compute(
        self,
        operator: Binary,
        other: Number,
    ) -> Result<Number, ArithmeticError> {
        let (Some(left), Some(right)) = (self.whole(), other.whole()) else {
            return compute_decimal(self.decimal(), operator, other.decimal());
        };
        // Two 64-bit numbers cannot overflow 128 bits.
        let value = match operator {
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            Binary::Divide | Binary::Remainder if right == 0 => {
                return Err(ArithmeticError::DivisionByZero);
            }
            Binary::Divide => left.checked_div(right),
            Binary::Remainder => left.checked_rem(right),
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessOrEqual
            | Binary::Greater
            | Binary::GreaterOrEqual
            | Binary::In => None,
        }
        .ok_or(ArithmeticError::Overflow)?;
        let int = || i64::try_from(value).ok().map(Number::Int);
        let uint = || u64::try_from(value).ok().map(Number::Uint);
        match (self, other) {
            (Number::Int(_), Number::Int(_)) => int(),
            (Number::Uint(_), Number::Uint(_)) => uint(),
            (Number::Int(_) | Number::Uint(_) | Number::Double(_), _) => int().or_else(uint),
        }
        .ok_or(ArithmeticError::Overflow)
    }
}

fn compute_decimal(left: f64, operator: Binary, right: f64) -> Result<Number, ArithmeticError> {
    let value = match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Remainder
        | Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::In => return Err(ArithmeticError::Decimal),
    };
    Ok(Number::Double(value))
}

/// Compares an integer with a double without rounding.
fn compare_decimal(whole: i128, decimal: f64) -> Option<Ordering> {
    /// Beyond the range of 64-bit integers, within the range of 128-bit integers.
    const BEYOND: f64 = 1e20;
    if decimal.is_nan() {
        return None;
    }
    if decimal >= BEYOND {
        return Some(Ordering::Less);
    }
    if decimal <= -BEYOND {
        return Some(Ordering::Greater);
    }
    let part = decimal.fract();
    let below = 0.0_f64.partial_cmp(&part)?;
    Some(whole.cmp(&(decimal.trunc() as i128)).then(below))
}
