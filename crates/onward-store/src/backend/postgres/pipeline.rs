//! Many messages in one round trip.
//!
//! The driver sends a message when its future is first polled, and the server answers in that order.
//! So all are polled once, in order, and then waited for, in order. A message that cannot even be
//! written (a value that does not fit its parameter) stops the sending: the server would not miss it,
//! and would commit the rest.

use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::Error as Driver;

/// Something that is sent when it is first polled, and done when its answer is here.
pub(super) type Sent<'s, A> = Pin<Box<dyn Future<Output = Result<A, Driver>> + Send + 's>>;

/// What ended a pipeline.
pub(super) struct Broken {
    /// Which message failed, counted from 0.
    pub(super) place: usize,
    pub(super) why: Driver,
    /// Whether all were sent, this one and those behind it too.
    pub(super) all_sent: bool,
}

/// Sends all, and waits for all, in order. The first that fails is the one to be told of: the others
/// behind it only say that their transaction has failed.
pub(super) async fn in_order<A>(mut messages: Vec<Sent<'_, A>>) -> Result<Vec<A>, Broken> {
    let mut answers = Vec::with_capacity(messages.len());
    std::future::poll_fn(|context| {
        for message in &mut messages {
            let answer = match message.as_mut().poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            };
            let unsent = matches!(answer, Some(Err(_)));
            answers.push(answer);
            if unsent {
                break;
            }
        }
        Poll::Ready(())
    })
    .await;
    let all_sent = answers.len() == messages.len() && !matches!(answers.last(), Some(Some(Err(_))));
    let mut done = Vec::with_capacity(answers.len());
    for (place, (answer, message)) in answers.into_iter().zip(messages).enumerate() {
        let answer = match answer {
            Some(answer) => answer,
            // Answers come in the order of the messages: nobody behind this one is kept waiting.
            None => message.await,
        };
        done.push(answer.map_err(|why| Broken {
            place,
            why,
            all_sent,
        })?);
    }
    Ok(done)
}
