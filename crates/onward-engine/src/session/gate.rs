//! May a call be made? Where a turn has to end in text, it may not; and which turn it belongs to.

use onward_core::Timestamp;
use onward_core::role::Permission;
use onward_core::turn::ladder::{self, Gate};
use onward_core::turn::{LoopControl, TurnEnd};
use onward_store::{Turn, Tx};

use super::watch::{Desk, Known, goes_on, hear};
use super::{Gated, Heard};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// A call is about to be made. Who can stop the turn says so, and the turn is then over.
    pub async fn before_call(
        &self,
        caller: &Caller,
        heard: Heard,
        call: Option<String>,
        can_stop: bool,
        control: LoopControl,
    ) -> Result<Gated, Error> {
        caller.allow(Permission::Record)?;
        let heard = heard.cleaned()?;
        // Nearly always nothing is wrong, and nothing need be written.
        if !self.is_closed(caller, &heard, control).await? {
            return Ok(open());
        }
        let now = self.now();
        let gated = self.store.write(&caller.tenant, move |tx| {
            let (heard, call) = (heard.clone(), call.clone());
            Box::pin(async move {
                let (gated, _) = gate(tx, &heard, call, can_stop, control, now).await?;
                Ok::<_, Error>(gated)
            })
        });
        gated.await
    }

    /// Whether the next model step must be text. Reads only, for those who can take the tools away.
    pub async fn is_closed(
        &self,
        caller: &Caller,
        heard: &Heard,
        control: LoopControl,
    ) -> Result<bool, Error> {
        caller.allow(Permission::Record)?;
        let heard = heard.clone().cleaned()?;
        let closed = self.store.read(&caller.tenant, move |tx| {
            let heard = heard.clone();
            Box::pin(async move {
                let known = tx.known_session(&heard.session, &heard.subagent).await?;
                Ok::<_, Error>(known.is_some_and(|(session, turn)| {
                    !session.switched_off && is_closed(turn.as_ref(), &heard, control)
                }))
            })
        });
        closed.await
    }
}

/// Whether the turn that is being told of has to end in text.
fn is_closed(turn: Option<&Turn>, heard: &Heard, control: LoopControl) -> bool {
    let turn = turn.filter(|turn| goes_on(turn, heard));
    turn.is_some_and(|turn| control.is_closed(&turn.standing))
}

/// Whether a call may be made; where it may, its turn and the number of the step that it belongs to.
pub(crate) async fn gate(
    tx: &mut Tx,
    heard: &Heard,
    call: Option<String>,
    can_stop: bool,
    control: LoopControl,
    now: Timestamp,
) -> Result<(Gated, Option<(u32, u32)>), Error> {
    let known = hear(tx, heard, now).await?;
    if known.off || !is_closed(known.turn.as_ref(), heard, control) {
        let turn = going_on(tx, heard, known, control, now);
        return Ok((open(), Some((turn.number, turn.standing.steps + 1))));
    }
    let mut desk = Desk::go_on(tx, heard, known, control, now);
    let gate = control.before_call(&mut desk.turn.standing);
    desk.remember(call);
    if gate == Gate::Stopped && can_stop {
        desk.turn.ended.get_or_insert((now, TurnEnd::Stopped));
    }
    let standing = desk.turn.standing;
    let to_agent = ladder::refusal(&standing, &desk.watched.state.evidence);
    desk.keep(tx, heard);
    let gated = Gated {
        gate,
        to_agent,
        to_person: ladder::for_person(&standing),
    };
    Ok((gated, None))
}

/// The turn that is going on. Only one that begins is written.
fn going_on(
    tx: &mut Tx,
    heard: &Heard,
    known: Known,
    control: LoopControl,
    now: Timestamp,
) -> Turn {
    match &known.turn {
        Some(turn) if goes_on(turn, heard) => turn.clone(),
        Some(_) | None => {
            let desk = Desk::fresh(tx, heard, known, control, now);
            desk.keep(tx, heard);
            desk.turn
        }
    }
}

/// The number of a turn that somebody tells of: the one that is going on, where they name none; one
/// that nobody has heard of begins.
pub(crate) async fn turn_of(
    tx: &mut Tx,
    heard: &Heard,
    number: Option<u32>,
    now: Timestamp,
) -> Result<u32, Error> {
    let known = hear(tx, heard, now).await?;
    let control = LoopControl::default();
    let Some(number) = number else {
        return Ok(going_on(tx, heard, known, control, now).number);
    };
    let last = known.turn.as_ref().map(|turn| turn.number);
    if last == Some(number)
        || tx
            .turn(&heard.session, &heard.subagent, number)
            .await?
            .is_some()
    {
        return Ok(number);
    }
    let mut desk = Desk::fresh(tx, heard, known, control, now);
    desk.turn.number = number;
    desk.watched.turn = number;
    desk.keep(tx, heard);
    Ok(number)
}

fn open() -> Gated {
    Gated {
        gate: Gate::Open,
        to_agent: String::new(),
        to_person: String::new(),
    }
}
