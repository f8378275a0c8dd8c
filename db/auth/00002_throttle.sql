-- +goose Up

-- charge counts an attempt under key, if every rule still allows one. rules is
-- [{"name", "limit", "window", "rest"}], window and rest in seconds: at most
-- limit attempts of that name within any window; the attempt beyond begins a
-- rest, in which nothing of that name is allowed. A refused attempt is not
-- counted and does not prolong a rest, so that nobody can be kept out for good.
--
-- The row's lock makes parallel attempts queue: they never exceed the limit.
-- counts is {"name": {"at": [epoch, ...], "rest": epoch}}; "at" never holds more
-- than the largest limit of its name.
-- +goose StatementBegin
CREATE FUNCTION auth.charge(charged_key bytea, rules jsonb, at timestamptz)
RETURNS TABLE (allowed boolean, retry_at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    now_s    double precision := extract(epoch FROM at);
    c        jsonb;
    rule     jsonb;
    rule_name text;
    until    double precision := 0;
    longest  double precision := 0;
    taken    integer;
BEGIN
    IF jsonb_array_length(rules) = 0 THEN
        RETURN QUERY SELECT true, NULL::timestamptz;
        RETURN;
    END IF;
    INSERT INTO auth.throttle AS t (key, counts, expires_at) VALUES (charged_key, '{}', at)
    ON CONFLICT (key) DO UPDATE SET counts = t.counts
    RETURNING t.counts INTO c;

    FOR rule IN SELECT * FROM jsonb_array_elements(rules) LOOP
        until := greatest(until, coalesce((c -> (rule ->> 'name') ->> 'rest')::double precision, 0));
        longest := greatest(longest, (rule ->> 'window')::double precision, (rule ->> 'rest')::double precision);
    END LOOP;
    IF until > now_s THEN
        RETURN QUERY SELECT false, to_timestamp(until);
        RETURN;
    END IF;

    FOR rule IN SELECT * FROM jsonb_array_elements(rules) LOOP
        rule_name := rule ->> 'name';
        SELECT count(*) INTO taken FROM jsonb_array_elements(coalesce(c -> rule_name -> 'at', '[]')) AS a
        WHERE a::double precision > now_s - (rule ->> 'window')::double precision;
        IF taken >= (rule ->> 'limit')::integer THEN
            until := greatest(until, now_s + (rule ->> 'rest')::double precision);
            c := jsonb_set(c, ARRAY[rule_name, 'rest'], to_jsonb(until));
        END IF;
    END LOOP;
    IF until > now_s THEN
        UPDATE auth.throttle SET counts = c, expires_at = greatest(expires_at, at + make_interval(secs => longest)) WHERE key = charged_key;
        RETURN QUERY SELECT false, to_timestamp(until);
        RETURN;
    END IF;

    FOR rule_name, longest IN
        SELECT r ->> 'name', max((r ->> 'window')::double precision) FROM jsonb_array_elements(rules) AS r GROUP BY 1
    LOOP
        c := jsonb_set(c, ARRAY[rule_name], jsonb_build_object('at', to_jsonb(now_s) || coalesce(
            (SELECT jsonb_agg(a) FROM jsonb_array_elements(c -> rule_name -> 'at') AS a WHERE a::double precision > now_s - longest), '[]')));
        until := greatest(until, now_s + longest);
    END LOOP;
    UPDATE auth.throttle SET counts = c, expires_at = greatest(expires_at, to_timestamp(until)) WHERE key = charged_key;
    RETURN QUERY SELECT true, NULL::timestamptz;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION auth.charge(bytea, jsonb, timestamptz);
