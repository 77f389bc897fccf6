-- The nearest signs by an index, on servers that have pgvector. Differs from SQLite's because there is no
-- such index there. Nothing here needs the extension: where it is missing, these find no index.

-- The index of one tenant's signs as one model made them, of so many bits. It is made and dropped while
-- servers run, and only for tenants with many chunks.
CREATE FUNCTION onward_near_index(tenant text, of_model text, width bigint) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT 'chunk_signs_near_'
        || to_hex(hashtextextended(format('%L %L %s', tenant, of_model, width), 0))
$$;

-- The chunks whose signs are nearest, by that index; none where it is not there, or not whole yet. It is
-- planned with the tenant, the model and the width written out, without which no server would see that the
-- index holds just what is asked for. It runs as the owner of the tables, whom row security binds as well:
-- the operator may stand in a schema that a tenant's role may not look into.
CREATE FUNCTION onward_near(of_model text, asked text, most bigint)
RETURNS TABLE (source_id uuid, ordinal bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1000 SET search_path FROM CURRENT SET enable_sort = off AS $$
DECLARE
    tenant text := NULLIF(current_setting('onward.tenant', true), '');
    width bigint := length(asked);
    extension_schema text;
BEGIN
    SELECT nspname INTO extension_schema
    FROM pg_index, pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
    WHERE indexrelid = to_regclass(onward_near_index(tenant, of_model, width)) AND indisvalid
        AND extname = 'vector';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- As many as are asked for in one go, and more where some of these are gone since.
    PERFORM set_config('hnsw.ef_search', greatest(1, least(most, 1000))::text, true),
        set_config('hnsw.iterative_scan', 'strict_order', true);
    RETURN QUERY EXECUTE format(
        'SELECT source_id, ordinal FROM chunk_signs WHERE tenant_id = %L AND model = %L '
            'AND length(sign) = %s ORDER BY sign::bit(%s) OPERATOR(%I.<~>) %L::bit(%s) LIMIT %s',
        tenant, of_model, width, width, extension_schema, asked, width, most);
END;
$$;

REVOKE EXECUTE ON FUNCTION onward_near_index(text, text, bigint), onward_near(text, text, bigint)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION onward_near(text, text, bigint) TO onward_tenant;
