//! A store that fails. Whoever was not answered knows nothing; but what happened is all of it, or
//! nothing, and asking again is safe.

use onward_core::Code;

use crate::ask::{Ask, What};
use crate::model::Model;
use crate::rows::{self, Rows};
use crate::said::Said;
use crate::scene::Scene;

/// So far ahead that it never comes.
pub(crate) const NEVER: u32 = u32::MAX;

impl Scene<'_> {
    pub(crate) async fn say_with_a_fault(&mut self) -> Result<(), String> {
        let (agent, ask) = self.crowd.wish(&self.model);
        if self.dice.percent(60) {
            return self.say(agent, &ask).await;
        }
        self.home.faults.strike_after(self.dice.order_below(12));
        let said = ask.put(self.home.engine(), &mut self.watcher).await;
        self.home.faults.strike_after(NEVER);
        self.log(&ask, &said);
        if !matches!(said, Said::Unavailable(_)) {
            return self.follow(agent, &ask, &said);
        }
        let unknown = self.find_out(&ask).await?;
        if unknown || self.dice.percent(70) {
            let again = ask.again(&mut self.dice);
            self.say(agent, &again).await?;
        }
        Ok(())
    }

    /// Asks the rows whether it was done. True where they do not say.
    async fn find_out(&mut self, ask: &Ask) -> Result<bool, String> {
        let mut after = self.model.clone();
        let told = after.follow(ask, self.now(), None);
        let rows = Rows::read(self.home.engine(), &self.crowd.tenants).await?;
        let done = mix(&mut self.model, after, &rows)
            .map_err(|why| format!("neither before nor after:\n{why}"))?;
        if let What::Sweep { .. } = ask.what {
            self.model.watch = done.watch;
        }
        rows.fit(&mut self.model)?;
        // What was kept for a plan that is gone stands in no row that is read here.
        Ok(matches!(told, Said::Refused(Code::StepNotFound, Some(_))))
    }
}

/// Each plan as it was, or as it should be then: whichever the rows say.
fn mix(before: &mut Model, after: Model, rows: &Rows) -> Result<Model, String> {
    let mut keys: Vec<_> = before
        .plans
        .keys()
        .chain(after.plans.keys())
        .cloned()
        .collect();
    keys.sort();
    keys.dedup();
    let mut done = false;
    for key in keys {
        let row = rows.0.get(&key);
        let (mut was, mut is) = (
            before.plans.get(&key).cloned(),
            after.plans.get(&key).cloned(),
        );
        let fits = |plan: &mut Option<_>| match (plan, row) {
            (None, None) => Ok(()),
            (Some(plan), Some(row)) => rows::fit(plan, row),
            (None, Some(_)) => Err("it is there".to_owned()),
            (Some(_), None) => Err("it is not there".to_owned()),
        };
        let Err(not_before) = fits(&mut was) else {
            continue;
        };
        fits(&mut is).map_err(|not_after| {
            format!("not as before: {not_before}\nnot as after: {not_after}")
        })?;
        done = true;
        match is {
            Some(plan) => before.plans.insert(key, plan),
            None => before.plans.remove(&key),
        };
    }
    if done {
        before.remember_as(&after);
    }
    Ok(after)
}
