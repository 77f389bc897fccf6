-- Nearest-neighbour search by an index, on servers with pgvector. Differs from SQLite, which has no
-- such index. Nothing here requires the extension: without it, these functions find no index.

-- Name of the index over the signs of one tenant and one model, of this many bits. Indexes are
-- created and dropped while servers run, and only for tenants with many chunks.
CREATE FUNCTION onward_near_index(tenant text, of_model text, width bigint) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT 'chunk_signs_near_'
        || to_hex(hashtextextended(format('%L %L %s', tenant, of_model, width), 0))
$$;

-- The chunks with the nearest signs, by that index; none if it does not exist or is not valid.
-- Tenant, model and width are literals in the query, because otherwise the planner would not
-- recognise that the partial index applies. It runs as the owner of the tables, to whom row
-- security applies as well: the operator `<~>` may be in a schema that the role of a tenant may not
-- use.
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
    -- Scan as many entries as requested, and more if some of them are dead.
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
