//! Values in PostgreSQL's binary format.
//!
//! A value is encoded as the type of its parameter. A mismatch is an error before anything is sent,
//! so the rest of the transaction is not sent either. U+0000 is rejected with a clear message:
//! PostgreSQL cannot store it, and callers of the store replace it.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use crate::value::Value;

type Misfit = Box<dyn Error + Sync + Send>;

impl ToSql for Value {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, Misfit> {
        match self {
            Value::Null => return Ok(IsNull::Yes),
            Value::Int(int) => match *wanted {
                Type::INT8 => out.put_i64(*int),
                Type::INT4 => out.put_i32(i32::try_from(*int)?),
                Type::INT2 => out.put_i16(i16::try_from(*int)?),
                // As SQLite does for a column of numbers.
                #[allow(
                    clippy::cast_precision_loss,
                    reason = "the parameter is a floating-point number"
                )]
                Type::FLOAT8 => out.put_f64(*int as f64),
                _ => return Err(misfit("an integer", wanted)),
            },
            Value::Real(real) => match *wanted {
                Type::FLOAT8 => out.put_f64(*real),
                _ => return Err(misfit("a number", wanted)),
            },
            Value::Text(text) => {
                if !is_text(wanted) {
                    return Err(misfit("text", wanted));
                }
                if text.contains('\0') {
                    return Err("text with U+0000, which PostgreSQL cannot store".into());
                }
                out.put_slice(text.as_bytes());
            }
            Value::Id(id) => match *wanted {
                Type::UUID => out.put_slice(id.as_bytes()),
                _ => return Err(misfit("an id", wanted)),
            },
            Value::Bytes(bytes) => match *wanted {
                Type::BYTEA => out.put_slice(bytes),
                _ => return Err(misfit("bytes", wanted)),
            },
        }
        Ok(IsNull::No)
    }

    /// Accepts every type, so that `to_sql` reports the mismatch.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(stored: &Type, raw: &'a [u8]) -> Result<Self, Misfit> {
        Ok(match *stored {
            Type::INT8 => Value::Int(i64::from_sql(stored, raw)?),
            Type::INT4 => Value::Int(i32::from_sql(stored, raw)?.into()),
            Type::INT2 => Value::Int(i16::from_sql(stored, raw)?.into()),
            Type::BOOL => Value::Int(bool::from_sql(stored, raw)?.into()),
            Type::FLOAT8 => Value::Real(f64::from_sql(stored, raw)?),
            Type::FLOAT4 => Value::Real(f32::from_sql(stored, raw)?.into()),
            Type::UUID => Value::Id(Uuid::from_slice(raw)?),
            Type::BYTEA => Value::Bytes(raw.into()),
            Type::NUMERIC => whole(raw).map(Value::Int).ok_or_else(|| {
                Misfit::from("a `numeric` that is not a whole number; cast it in the query")
            })?,
            _ if is_text(stored) => Value::Text(std::str::from_utf8(raw)?.into()),
            _ => return Err(format!("unsupported column type `{stored}`").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Misfit> {
        Ok(Value::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn is_text(kind: &Type) -> bool {
    matches!(
        *kind,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN
    )
}

fn misfit(given: &str, wanted: &Type) -> Misfit {
    format!("cannot bind {given} to a parameter of type `{wanted}`").into()
}

/// A whole number from a `numeric`, which PostgreSQL returns for the sum of a `bigint` column: four
/// 16-bit numbers (count, weight, sign, scale), then digits in base 10,000.
fn whole(raw: &[u8]) -> Option<i64> {
    let mut parts = raw
        .chunks_exact(2)
        .map(|pair| i16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight, sign, _scale) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let sign = match sign {
        0 => 1,
        0x4000 => -1,
        // NaN or infinity.
        _ => return None,
    };
    let digits: Vec<i16> = parts.collect();
    if digits.len() != usize::try_from(count).ok()? || i32::from(weight) >= 16 {
        return None;
    }
    let mut number: i128 = 0;
    for place in 0..=weight {
        let digit = digits
            .get(usize::try_from(place).ok()?)
            .copied()
            .unwrap_or(0);
        number = number.checked_mul(10_000)? + i128::from(digit);
    }
    let fraction = digits.iter().skip(usize::try_from(weight + 1).unwrap_or(0));
    if fraction.copied().any(|digit| digit != 0) {
        return None;
    }
    i64::try_from(number * sign).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &Value, wanted: &Type) -> Result<Value, String> {
        let mut out = BytesMut::new();
        match value
            .to_sql(wanted, &mut out)
            .map_err(|why| why.to_string())?
        {
            IsNull::Yes => Value::from_sql_null(wanted),
            IsNull::No => Value::from_sql(wanted, &out),
        }
        .map_err(|why| why.to_string())
    }

    #[test]
    fn round_trips_every_kind_of_value() {
        for (value, wanted) in [
            (Value::Null, Type::UUID),
            (Value::Null, Type::INT8),
            (Value::Int(i64::MIN), Type::INT8),
            (Value::Int(-7), Type::INT4),
            (Value::Int(7), Type::INT2),
            (Value::Real(0.1), Type::FLOAT8),
            (Value::Text("ä\u{202e}\n".into()), Type::TEXT),
            (Value::Text("".into()), Type::UNKNOWN),
            (Value::Id(Uuid::from_u128(u128::MAX)), Type::UUID),
            (Value::Bytes([0, 255][..].into()), Type::BYTEA),
        ] {
            assert_eq!(written(&value, &wanted), Ok(value));
        }
        assert_eq!(written(&Value::Int(3), &Type::FLOAT8), Ok(Value::Real(3.0)));
    }

    #[test]
    fn rejects_a_value_of_the_wrong_type() {
        let rejected = |value, wanted| written(&value, &wanted).unwrap_err();
        assert_eq!(
            rejected(Value::Int(1), Type::TEXT),
            "cannot bind an integer to a parameter of type `text`"
        );
        assert_eq!(
            rejected(Value::Real(1.0), Type::INT8),
            "cannot bind a number to a parameter of type `int8`"
        );
        assert_eq!(
            rejected(Value::Text("1".into()), Type::INT8),
            "cannot bind text to a parameter of type `int8`"
        );
        assert_eq!(
            rejected(Value::Id(Uuid::nil()), Type::TEXT),
            "cannot bind an id to a parameter of type `text`"
        );
        assert!(rejected(Value::Int(1 << 40), Type::INT4).contains("out of range"));
        assert!(rejected(Value::Text("a\0b".into()), Type::TEXT).contains("U+0000"));
    }

    #[test]
    fn decodes_a_sum_as_a_whole_number() {
        let numeric = |parts: &[i16]| {
            let raw: Vec<u8> = parts.iter().flat_map(|part| part.to_be_bytes()).collect();
            Value::from_sql(&Type::NUMERIC, &raw).ok()
        };
        assert_eq!(numeric(&[0, 0, 0, 0]), Some(Value::Int(0)));
        assert_eq!(numeric(&[1, 0, 0x4000, 0, 42]), Some(Value::Int(-42)));
        assert_eq!(numeric(&[2, 1, 0, 0, 12, 3456]), Some(Value::Int(123_456)));
        assert_eq!(numeric(&[1, 1, 0, 0, 12]), Some(Value::Int(120_000)));
        assert_eq!(numeric(&[2, 0, 0, 1, 1, 5000]), None, "one and a half");
        assert_eq!(numeric(&[1, -1, 0, 1, 5000]), None, "a half");
        assert_eq!(numeric(&[1, 15, 0, 0, 1]), None, "too large");
        assert_eq!(numeric(&[0, 0, i16::MIN | 0x4000, 0]), None, "not a number");
    }
}
