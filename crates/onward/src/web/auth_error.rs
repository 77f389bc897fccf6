//! Failed authentication.

use onward_engine::Error;

use super::problem::Problem;

/// Detail of responses to requests without credentials.
pub(super) const TOKEN_REQUIRED: &str = "the request has no token";

/// Why a request was not authenticated.
pub(super) enum AuthError {
    /// The request has no credentials.
    Missing,
    /// The `Authorization` header does not contain a bearer token.
    Malformed(&'static str),
    /// The token is invalid.
    Invalid(&'static str),
    /// The session cookie is invalid or has expired.
    SessionExpired,
    /// The token lacks these scopes.
    InsufficientScope(Vec<String>),
    /// The credentials could not be checked.
    Failed(Problem),
}

impl From<Error> for AuthError {
    fn from(error: Error) -> Self {
        if let Error::Unauthorized(reason) = error {
            AuthError::Invalid(reason)
        } else {
            AuthError::Failed(error.into())
        }
    }
}
