-- Notifications and their delivery state. Differs from PostgreSQL as the first schema does.

CREATE TABLE notices (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    -- Identifies the finding within the plan, so that it is reported once, whichever process found
    -- it.
    finding text NOT NULL CHECK (finding <> ''),
    kind text NOT NULL CHECK (kind IN ('stall', 'review', 'failure')),
    step_id blob,
    attempt integer CHECK (attempt >= 1),
    since_at integer NOT NULL,
    note text,
    found_at integer NOT NULL,
    delivery text NOT NULL CHECK (delivery IN ('waiting', 'sent', 'given_up', 'unwanted')),
    tries integer NOT NULL CHECK (tries >= 0),
    -- Time of the next attempt; no process tries before.
    next_at integer,
    ended_at integer,
    last_error text,
    PRIMARY KEY (tenant_id, plan_id, finding),
    CHECK ((delivery = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((delivery = 'waiting') = (ended_at IS NULL))
);
CREATE INDEX notices_waiting ON notices (tenant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX notices_by_time ON notices (tenant_id, found_at);
