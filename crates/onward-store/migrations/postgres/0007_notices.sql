-- Notifications and their delivery state. Differs from SQLite as the first schema does.

CREATE TABLE notices (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    -- Identifies the finding within the plan, so that it is reported once, whichever process found
    -- it.
    finding text NOT NULL CHECK (finding <> ''),
    kind text NOT NULL CHECK (kind IN ('stall', 'review', 'failure')),
    step_id uuid,
    attempt bigint CHECK (attempt >= 1),
    since_at bigint NOT NULL,
    note text,
    found_at bigint NOT NULL,
    delivery text NOT NULL CHECK (delivery IN ('waiting', 'sent', 'given_up', 'unwanted')),
    tries bigint NOT NULL CHECK (tries >= 0),
    -- Time of the next attempt; no process tries before.
    next_at bigint,
    ended_at bigint,
    last_error text,
    PRIMARY KEY (tenant_id, plan_id, finding),
    CHECK ((delivery = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((delivery = 'waiting') = (ended_at IS NULL))
);
CREATE INDEX notices_waiting ON notices (tenant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX notices_by_time ON notices (tenant_id, found_at);

-- As for the tables of the first schema: each tenant reads and writes only its own rows.
ALTER TABLE notices ENABLE ROW LEVEL SECURITY;
ALTER TABLE notices FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON notices
    USING (tenant_id = NULLIF(current_setting('onward.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('onward.tenant', true), ''));

GRANT SELECT, INSERT, UPDATE, DELETE ON notices TO onward_tenant;
