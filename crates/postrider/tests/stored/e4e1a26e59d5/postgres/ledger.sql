--
-- PostgreSQL database dump
--

\restrict zJpKYC0IQzRWyC4iE50Aqu4lYTq7SsfYt6rqqM6HbFLwdRrOPca4tQnsz5VcfyI

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: api_token; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_token (
    number bigint NOT NULL,
    hash bytea NOT NULL,
    member bigint NOT NULL,
    scopes smallint NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    CONSTRAINT api_token_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT api_token_scopes_check CHECK (((scopes >= 0) AND (scopes <= 7)))
);


--
-- Name: api_token_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.api_token ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_token_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: challenge; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.challenge (
    hash bytea NOT NULL,
    node bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    CONSTRAINT challenge_hash_check CHECK ((length(hash) = 32))
);


--
-- Name: conversation; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.conversation (
    number bigint NOT NULL,
    id uuid NOT NULL,
    kind smallint NOT NULL,
    topic text COLLATE pg_catalog."C",
    lo bigint,
    hi bigint,
    head_seq bigint DEFAULT 0 NOT NULL,
    head_ts_us bigint DEFAULT 0 NOT NULL,
    floor_seq bigint DEFAULT 0 NOT NULL,
    floor_ts_us bigint DEFAULT 0 NOT NULL,
    floor_id uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    awaiting_seq bigint,
    awaiting_by bigint,
    awaiting_rev bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    CONSTRAINT conversation_check CHECK (((kind = 0) = (topic IS NOT NULL))),
    CONSTRAINT conversation_check1 CHECK (((kind = 1) = ((lo IS NOT NULL) AND (hi IS NOT NULL)))),
    CONSTRAINT conversation_check2 CHECK ((lo <= hi)),
    CONSTRAINT conversation_kind_check CHECK ((kind = ANY (ARRAY[0, 1]))),
    CONSTRAINT conversation_state_check CHECK ((state = ANY (ARRAY[0, 1])))
)
WITH (fillfactor='50');


--
-- Name: conversation_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.conversation ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.conversation_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: dedupe; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.dedupe (
    mesh smallint NOT NULL,
    sender_member_id bigint NOT NULL,
    client_message_id text NOT NULL COLLATE pg_catalog."C",
    state smallint NOT NULL,
    request_fingerprint bytea NOT NULL,
    broker_message_id uuid,
    conversation bigint,
    history_id bigint,
    destination_kind smallint,
    destination_ref text,
    first_seen_at bigint NOT NULL,
    expires_at bigint,
    history_available boolean NOT NULL,
    CONSTRAINT dedupe_check CHECK (((state = 0) = ((broker_message_id IS NOT NULL) AND (conversation IS NOT NULL) AND (history_id IS NOT NULL) AND (destination_kind IS NOT NULL) AND (destination_ref IS NOT NULL)))),
    CONSTRAINT dedupe_destination_kind_check CHECK ((destination_kind = ANY (ARRAY[0, 1]))),
    CONSTRAINT dedupe_mesh_check CHECK ((mesh = 1)),
    CONSTRAINT dedupe_request_fingerprint_check CHECK ((length(request_fingerprint) = 32)),
    CONSTRAINT dedupe_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


--
-- Name: dedupe_text; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.dedupe_text AS
 SELECT dedupe.sender_member_id,
    dedupe.client_message_id,
        CASE dedupe.state
            WHEN 0 THEN 'accepted'::text
            WHEN 1 THEN 'retired'::text
            ELSE NULL::text
        END AS state,
    encode(dedupe.request_fingerprint, 'hex'::text) AS request_fingerprint,
    (dedupe.broker_message_id)::text AS broker_message_id,
    dedupe.conversation,
    dedupe.history_id,
        CASE dedupe.destination_kind
            WHEN 0 THEN 'topic'::text
            WHEN 1 THEN 'dm'::text
            ELSE NULL::text
        END AS destination_kind,
    dedupe.destination_ref,
    dedupe.first_seen_at,
    dedupe.expires_at,
    dedupe.history_available
   FROM public.dedupe;


--
-- Name: delivery; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.delivery (
    message bigint NOT NULL,
    recipient bigint NOT NULL,
    sender bigint NOT NULL,
    rung smallint NOT NULL,
    rung_told smallint,
    delivered_at bigint,
    notified_at bigint,
    engaged_at bigint,
    processed_at bigint,
    ended_at bigint,
    ended_code text,
    read_at bigint,
    push_conversation bigint,
    stretch bigint,
    CONSTRAINT delivery_rung_check CHECK (((rung >= 1) AND (rung <= 7))),
    CONSTRAINT delivery_rung_told_check CHECK (((rung_told >= 1) AND (rung_told <= 7)))
);


--
-- Name: delivery_text; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.delivery_text AS
 SELECT delivery.message,
    delivery.recipient,
    delivery.sender,
        CASE delivery.rung
            WHEN 1 THEN 'accepted'::text
            WHEN 2 THEN 'expired'::text
            WHEN 3 THEN 'dead_letter'::text
            WHEN 4 THEN 'delivered'::text
            WHEN 5 THEN 'notified'::text
            WHEN 6 THEN 'engaged'::text
            WHEN 7 THEN 'processed'::text
            ELSE NULL::text
        END AS rung,
        CASE delivery.rung_told
            WHEN 1 THEN 'accepted'::text
            WHEN 2 THEN 'expired'::text
            WHEN 3 THEN 'dead_letter'::text
            WHEN 4 THEN 'delivered'::text
            WHEN 5 THEN 'notified'::text
            WHEN 6 THEN 'engaged'::text
            WHEN 7 THEN 'processed'::text
            ELSE NULL::text
        END AS rung_told,
    delivery.delivered_at,
    delivery.notified_at,
    delivery.engaged_at,
    delivery.processed_at,
    delivery.ended_at,
    delivery.ended_code,
    delivery.read_at
   FROM public.delivery;


--
-- Name: escalation; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.escalation (
    conversation bigint NOT NULL,
    rev bigint NOT NULL,
    seq bigint,
    asked_by bigint,
    at bigint NOT NULL,
    CONSTRAINT escalation_check CHECK (((seq IS NULL) = (asked_by IS NULL)))
);


--
-- Name: hub_head; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.hub_head (
    kind smallint NOT NULL,
    seq bigint NOT NULL
);


--
-- Name: hub_record; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.hub_record (
    kind smallint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    seq bigint NOT NULL,
    body bytea,
    created_by bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_by bigint NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT hub_record_version_check CHECK ((version > 0))
);


--
-- Name: idem; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.idem (
    principal bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    state smallint NOT NULL,
    method text,
    path text,
    fingerprint bytea,
    status smallint,
    etag text,
    body bytea,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    CONSTRAINT idem_check CHECK (((state = 0) = ((fingerprint IS NOT NULL) AND (status IS NOT NULL) AND (body IS NOT NULL)))),
    CONSTRAINT idem_fingerprint_check CHECK ((length(fingerprint) = 32)),
    CONSTRAINT idem_state_check CHECK ((state = ANY (ARRAY[0, 1])))
);


--
-- Name: invite; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.invite (
    hash bytea NOT NULL,
    expected_node text,
    role smallint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    revoked_at bigint,
    CONSTRAINT invite_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT invite_role_check CHECK ((role = ANY (ARRAY[0, 1])))
);


--
-- Name: issuer; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.issuer (
    key_id smallint NOT NULL,
    secret bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT issuer_key_id_check CHECK ((key_id = 1)),
    CONSTRAINT issuer_secret_check CHECK ((length(secret) = 32))
);


--
-- Name: mail; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.mail (
    recipient bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT mail_check CHECK ((last >= first))
);


--
-- Name: member; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.member (
    number bigint NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    kind smallint NOT NULL,
    home bigint,
    role smallint NOT NULL,
    created_at bigint NOT NULL,
    removed_at bigint,
    pushed boolean DEFAULT false NOT NULL,
    CONSTRAINT member_kind_check CHECK ((kind = ANY (ARRAY[0, 1, 2]))),
    CONSTRAINT member_role_check CHECK ((role = ANY (ARRAY[0, 1])))
);


--
-- Name: member_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.member ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.member_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: mention_index; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.mention_index (
    member bigint NOT NULL,
    message bigint NOT NULL
);


--
-- Name: mesh; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.mesh (
    number smallint NOT NULL,
    id uuid NOT NULL,
    slug text NOT NULL,
    topics smallint NOT NULL,
    dedupe_days integer,
    conn_policy smallint NOT NULL,
    deliver_by_swept_at bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT mesh_conn_policy_check CHECK ((conn_policy = ANY (ARRAY[0, 1]))),
    CONSTRAINT mesh_dedupe_days_check CHECK ((dedupe_days >= 7)),
    CONSTRAINT mesh_number_check CHECK ((number = 1)),
    CONSTRAINT mesh_topics_check CHECK ((topics = ANY (ARRAY[0, 1])))
);


--
-- Name: message; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.message (
    number bigint NOT NULL,
    conversation bigint NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    ts_us bigint NOT NULL,
    sender bigint NOT NULL,
    client_message_id text NOT NULL COLLATE pg_catalog."C",
    envelope bytea NOT NULL,
    deliver_by bigint,
    dedupe_until bigint
);


--
-- Name: message_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.message ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.message_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: node; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.node (
    number bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    public_key bytea NOT NULL,
    link_epoch bigint NOT NULL,
    inbox_epoch text,
    redelivered_upto bigint DEFAULT 0 NOT NULL,
    joined_at bigint NOT NULL,
    last_seen_at bigint NOT NULL,
    removed_at bigint,
    CONSTRAINT node_public_key_check CHECK ((length(public_key) = 32))
);


--
-- Name: node_number_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.node ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.node_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: nonce; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.nonce (
    value bytea NOT NULL,
    until bigint NOT NULL,
    CONSTRAINT nonce_value_check CHECK ((length(value) = 32))
);


--
-- Name: outlived; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.outlived (
    client_message_id text NOT NULL COLLATE pg_catalog."C",
    message bigint NOT NULL
);


--
-- Name: read_mark; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.read_mark (
    member bigint NOT NULL,
    conversation bigint NOT NULL,
    seq bigint NOT NULL
);


--
-- Name: schema_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schema_version (
    number integer NOT NULL,
    name text NOT NULL,
    checksum bytea NOT NULL
);


--
-- Name: session; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.session (
    hash bytea NOT NULL,
    member bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended_at bigint,
    CONSTRAINT session_hash_check CHECK ((length(hash) = 32))
);


--
-- Name: sign_in; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sign_in (
    hash bytea NOT NULL,
    member bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    CONSTRAINT sign_in_hash_check CHECK ((length(hash) = 32))
);


--
-- Name: socket_ticket; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.socket_ticket (
    hash bytea NOT NULL,
    credential bytea NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    CONSTRAINT socket_ticket_credential_check CHECK ((length(credential) = 32)),
    CONSTRAINT socket_ticket_hash_check CHECK ((length(hash) = 32))
);


--
-- Name: subscription; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.subscription (
    conversation bigint NOT NULL,
    member bigint NOT NULL,
    since bigint NOT NULL
);


--
-- Name: ticket; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ticket (
    hash bytea NOT NULL,
    invite bytea,
    node text NOT NULL,
    public_key bytea NOT NULL,
    aud text NOT NULL,
    person text,
    expires_at bigint NOT NULL,
    used_at bigint,
    CONSTRAINT ticket_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT ticket_public_key_check CHECK ((length(public_key) = 32))
);


--
-- Name: webhook; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhook (
    member bigint NOT NULL,
    url text NOT NULL,
    secret bytea NOT NULL,
    old_secret bytea,
    old_secret_until bigint,
    created_at bigint NOT NULL,
    served_at bigint DEFAULT 0 NOT NULL,
    disabled_at bigint,
    disabled_reason text,
    CONSTRAINT webhook_check CHECK (((old_secret IS NULL) = (old_secret_until IS NULL))),
    CONSTRAINT webhook_check1 CHECK (((disabled_at IS NULL) = (disabled_reason IS NULL))),
    CONSTRAINT webhook_old_secret_check CHECK ((length(old_secret) = 32)),
    CONSTRAINT webhook_secret_check CHECK ((length(secret) = 32))
);


--
-- Name: webhook_call; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhook_call (
    member bigint NOT NULL,
    conversation bigint NOT NULL,
    message bigint NOT NULL,
    attempts bigint NOT NULL,
    next_attempt_at bigint NOT NULL,
    lease_token bytea,
    last_answer text,
    CONSTRAINT webhook_call_attempts_check CHECK ((attempts > 0)),
    CONSTRAINT webhook_call_lease_token_check CHECK ((length(lease_token) = 16))
);


--
-- Data for Name: api_token; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.api_token (number, hash, member, scopes, created_at, revoked_at) FROM stdin;
1	\\x195a35a3fa6dc816a8f4d150d9e8c8f16824814ddcd5ae3262ead5fd2de322eb	3	3	1795124574218286	\N
2	\\x872cbf59183aee50c5024681445ad331b41e661f4a9d23f8763cb7afa6524f24	4	4	1795124574536311	\N
\.


--
-- Data for Name: challenge; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.challenge (hash, node, expires_at, used_at) FROM stdin;
\.


--
-- Data for Name: conversation; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.conversation (number, id, kind, topic, lo, hi, head_seq, head_ts_us, floor_seq, floor_ts_us, floor_id, epoch, state, awaiting_seq, awaiting_by, awaiting_rev, created_at, paused) FROM stdin;
1	01a1f5c3-3648-7431-8e78-cbc01361b2e0	0	log	\N	\N	6	1795124575258558	0	0	\N	0	0	\N	\N	0	1795124573768640	f
2	01a1f5c3-3b07-7dff-9bc3-68aa5dfc62b7	1	\N	1	2	9	1795124575666703	0	0	\N	0	0	\N	\N	0	1795124574983968	f
\.


--
-- Data for Name: dedupe; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.dedupe (mesh, sender_member_id, client_message_id, state, request_fingerprint, broker_message_id, conversation, history_id, destination_kind, destination_ref, first_seen_at, expires_at, history_available) FROM stdin;
1	1	before.to-bob.0	0	\\x1527fa12730beadb2ad9aebb27f81c2d3ad6f2a568771caa53053f1a27eababe	01a1f5c3-3b07-7956-afb0-9f57d10de612	2	1	1	bob	1795124574983968	1826660574983968	t
1	3	before.post.0	0	\\x3211fb5a22d8be260b32c385f2cf37339e3ee040e13e7def713d913462cdb6ef	01a1f5c3-3b35-7f69-a064-9e51b423009a	1	2	0	log	1795124575029354	1826660575029354	t
1	2	before.to-ann.0	0	\\x0cfb10c69b3850eeca52b0c1554b672737d85b4399d0cb6af6559aef5f2671c7	01a1f5c3-3b35-749a-a6d4-26c4aa380d54	2	2	1	ann	1795124575029353	1826660575029353	t
1	1	before.topic.0	0	\\x3bce442dbb8aa77c04fb01e7e3801122fb37cb8c9f9eb0b26a2895f3f17d9fcd	01a1f5c3-3b35-77b2-8090-cd0515e888c3	1	1	0	log	1795124575029353	1826660575029353	t
1	1	before.to-bob.1	0	\\xd19e84e21f107a2195be0406acab41ea6d592f78dd7fe5f908f1b006d483fd51	01a1f5c3-3ba7-7495-9d9d-5f9e0453c7fd	2	3	1	bob	1795124575143225	1826660575143225	t
1	2	before.to-ann.1	0	\\xe8d0c0234acb4a3502eb036bcfc70947b13edc8ef8045380a24777166b12fd77	01a1f5c3-3bae-731c-9318-0ab45a667ee8	2	4	1	ann	1795124575150188	1826660575150188	t
1	1	before.topic.1	0	\\xf451b455fad22f70030440990bbe44330346e2afa2777ecfbaa61ea5db8e0dee	01a1f5c3-3bae-74d9-9b54-a0c306989ebf	1	3	0	log	1795124575150188	1826660575150188	t
1	3	before.post.1	0	\\x32397ef317a887ac085f0bc28ac4e8c12a66731b8cee4a9bde676f5610aa7982	01a1f5c3-3bc1-77c1-9b1c-b5931ff811db	1	4	0	log	1795124575169137	1826660575169137	t
1	1	before.to-bob.2	0	\\x682b4c7e39ac4c8439c6b1ea44b271f8c4f8fd07b60e68ae90ee25b88df102e6	01a1f5c3-3bef-7617-a4f1-9a7e33ce1410	2	5	1	bob	1795124575215264	1826660575215264	t
1	2	before.to-ann.2	0	\\xfacf35a3dcb8b7c4de33fd3015a92be8e6058d1f336956d41f056c78a11da1aa	01a1f5c3-3bf7-7e18-a45b-859a84411642	2	6	1	ann	1795124575223710	1826660575223710	t
1	1	before.topic.2	0	\\x0de6d7e00c6fc9f9554f0bc94fbc97291a3328fe0d64a78c2898cefda3a68ed6	01a1f5c3-3c10-7016-8052-29d68128d0b7	1	5	0	log	1795124575248180	1826660575248180	t
1	3	before.post.2	0	\\xfa6d8fdb1a78126ca06825f1f91f352a5cddb6834102b441ccf6ecd022fcecf9	01a1f5c3-3c1a-7989-add4-7e02d8c4f58a	1	6	0	log	1795124575258558	1826660575258558	t
1	1	away.to-bob.0	0	\\xad2505585eb579dee15761faf7846200ea5643e2c2d046b4567a7c78ac0f2c39	01a1f5c3-3d42-737a-b119-1bbf22551a8d	2	7	1	bob	1795124575554281	1826660575554281	t
1	1	away.to-bob.1	0	\\x7af567bd5c45d5b0f34c14190d648a0efe4389dd06084c2d2e26bb1de71939a9	01a1f5c3-3db2-75c7-9b77-40124a0091c3	2	8	1	bob	1795124575666702	1826660575666702	t
1	1	away.to-bob.2	0	\\x3af66e422f48c14072494dc8b4300514d31a899c0ae89303025caad6de350043	01a1f5c3-3db2-7416-9f4f-97caafb60e9b	2	9	1	bob	1795124575666703	1826660575666703	t
\.


--
-- Data for Name: delivery; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.delivery (message, recipient, sender, rung, rung_told, delivered_at, notified_at, engaged_at, processed_at, ended_at, ended_code, read_at, push_conversation, stretch) FROM stdin;
7	1	3	5	\N	1795124575080712	1795124575480181	\N	\N	\N	\N	\N	\N	6
8	1	2	5	4	1795124575080712	1795124575480181	\N	\N	\N	\N	\N	\N	8
14	1	2	5	4	1795124575162558	1795124575480181	\N	\N	\N	\N	\N	\N	14
15	1	3	5	\N	1795124575183281	1795124575480181	\N	\N	\N	\N	\N	\N	15
19	1	2	5	4	1795124575233193	1795124575480181	\N	\N	\N	\N	\N	\N	19
21	1	3	5	\N	1795124575352523	1795124575480181	\N	\N	\N	\N	\N	\N	21
23	2	1	1	1	\N	\N	\N	\N	\N	\N	\N	\N	23
26	2	1	1	1	\N	\N	\N	\N	\N	\N	\N	\N	26
27	2	1	1	1	\N	\N	\N	\N	\N	\N	\N	\N	27
2	2	1	5	5	1795124575023112	1795124575488293	\N	\N	\N	\N	\N	\N	2
17	2	1	5	5	1795124575230701	1795124575488293	\N	\N	\N	\N	\N	\N	17
10	2	1	5	5	1795124575149612	1795124575488293	\N	\N	\N	\N	\N	\N	10
\.


--
-- Data for Name: escalation; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.escalation (conversation, rev, seq, asked_by, at) FROM stdin;
\.


--
-- Data for Name: hub_head; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.hub_head (kind, seq) FROM stdin;
2	0
3	0
4	0
5	0
1	3
\.


--
-- Data for Name: hub_record; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.hub_record (kind, id, version, seq, body, created_by, created_at, updated_by, updated_at) FROM stdin;
1	01M7TW6EW50VQASKVX94GSV2QC	1	1	\\x7b2273657373696f6e223a227331222c2273756d6d617279223a226265666f72652e77726974652e30227d	4	1795124575109774	4	1795124575109774
1	01M7TW6EYKZDG29RXH5KPSATB0	1	2	\\x7b2273657373696f6e223a227331222c2273756d6d617279223a226265666f72652e77726974652e31227d	4	1795124575187813	4	1795124575187813
1	01M7TW6F3WECYKJBYYDFW1PXAB	1	3	\\x7b2273657373696f6e223a227331222c2273756d6d617279223a226265666f72652e77726974652e32227d	4	1795124575357653	4	1795124575357653
\.


--
-- Data for Name: idem; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.idem (principal, key, state, method, path, fingerprint, status, etag, body, created_at, expires_at) FROM stdin;
4	before.write.0	0	POST	/hub/progress/	\\x8eb71c313a308fff79294730a6f47b6b8dbc23065240a23448a1812f715ef2f9	201	"1"	\\x7b226964223a2230314d3754573645573530565141534b56583934475356325143222c2276657273696f6e223a312c22637265617465645f6279223a2272656c6179222c22637265617465645f6174223a22323032362d31312d31395432313a34323a35352e3130393737345a222c22757064617465645f6279223a2272656c6179222c22757064617465645f6174223a22323032362d31312d31395432313a34323a35352e3130393737345a222c2273657373696f6e223a227331222c2273756d6d617279223a226265666f72652e77726974652e30227d	1795124575109774	1796334175109774
4	before.write.1	0	POST	/hub/progress/	\\xc43a3495b1a5fcc3287fc84c7b2d8291aae4a2a7542afbde98eccbdaa38bafea	201	"1"	\\x7b226964223a2230314d3754573645594b5a44473239525848354b505341544230222c2276657273696f6e223a312c22637265617465645f6279223a2272656c6179222c22637265617465645f6174223a22323032362d31312d31395432313a34323a35352e3138373831335a222c22757064617465645f6279223a2272656c6179222c22757064617465645f6174223a22323032362d31312d31395432313a34323a35352e3138373831335a222c2273657373696f6e223a227331222c2273756d6d617279223a226265666f72652e77726974652e31227d	1795124575187813	1796334175187813
4	before.write.2	0	POST	/hub/progress/	\\x4e007238331ba61b5fafd3c6112650f9e939c37b96366b0722363a2dae36894c	201	"1"	\\x7b226964223a2230314d375457364633574543594b4a4259594446573150584142222c2276657273696f6e223a312c22637265617465645f6279223a2272656c6179222c22637265617465645f6174223a22323032362d31312d31395432313a34323a35352e3335373635335a222c22757064617465645f6279223a2272656c6179222c22757064617465645f6174223a22323032362d31312d31395432313a34323a35352e3335373635335a222c2273657373696f6e223a227331222c2273756d6d617279223a226265666f72652e77726974652e32227d	1795124575357653	1796334175357653
\.


--
-- Data for Name: invite; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.invite (hash, expected_node, role, created_at, expires_at, used_at, revoked_at) FROM stdin;
\\x1c2c7b1333f4a439c4f8b95a1339c43fc327c78db59c2dac324371b4daae666f	\N	1	1795124571078354	1795125471078010	1795124572023839	\N
\\xd3db081986531dc414fd7e7b6ee281936fb4dde8f50fc0e164571cc74c0facc6	\N	0	1795124572100329	1795125472100112	1795124573336464	\N
\.


--
-- Data for Name: issuer; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.issuer (key_id, secret, created_at) FROM stdin;
1	\\x81a4153ee69245c1ae4dab1b2f0296e68ddb2eae4f1468b9d857c7524f30c65b	1795124571019655
\.


--
-- Data for Name: mail; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.mail (recipient, first, last) FROM stdin;
2	23	23
2	26	26
2	27	27
\.


--
-- Data for Name: member; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.member (number, id, name, kind, home, role, created_at, removed_at, pushed) FROM stdin;
1	01a1f5c3-2f77-741d-acf8-12d00b4a2ddc	ann	0	1	1	1795124572023839	\N	f
2	01a1f5c3-3498-7cec-b502-31039d844d88	bob	0	2	0	1795124573336464	\N	f
3	01a1f5c3-37b8-7d7d-9e73-5cd25488b103	script	2	\N	0	1795124574136056	\N	f
4	01a1f5c3-390b-7381-86a1-04206c3b2938	relay	2	\N	0	1795124574475938	\N	f
\.


--
-- Data for Name: mention_index; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.mention_index (member, message) FROM stdin;
\.


--
-- Data for Name: mesh; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.mesh (number, id, slug, topics, dedupe_days, conn_policy, deliver_by_swept_at, created_at) FROM stdin;
1	01a1f5c3-2b8b-7da4-b0b6-e2ee57319725	home	0	365	0	1795124571068390	1795124571019655
\.


--
-- Data for Name: message; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.message (number, conversation, seq, id, ts_us, sender, client_message_id, envelope, deliver_by, dedupe_until) FROM stdin;
2	2	1	01a1f5c3-3b07-7956-afb0-9f57d10de612	1795124574983968	1	before.to-bob.0	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f2d626f622e30222c22746f223a2240626f62222c22626f6479223a227468652074657874206f66206265666f72652e746f2d626f622e30222c22626f64795f76657273696f6e223a317d	\N	1826660574983968
6	1	1	01a1f5c3-3b35-77b2-8090-cd0515e888c3	1795124575029353	1	before.topic.0	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f7069632e30222c22746f223a22236c6f67222c22626f6479223a227468652074657874206f66206265666f72652e746f7069632e30222c22626f64795f76657273696f6e223a317d	\N	1826660575029353
7	1	2	01a1f5c3-3b35-7f69-a064-9e51b423009a	1795124575029354	3	before.post.0	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e706f73742e30222c22746f223a22236c6f67222c22626f6479223a227468652074657874206f66206265666f72652e706f73742e30222c22626f64795f76657273696f6e223a317d	\N	1826660575029354
8	2	2	01a1f5c3-3b35-749a-a6d4-26c4aa380d54	1795124575029353	2	before.to-ann.0	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f2d616e6e2e30222c22746f223a2240616e6e222c22626f6479223a227468652074657874206f66206265666f72652e746f2d616e6e2e30222c22626f64795f76657273696f6e223a317d	\N	1826660575029353
10	2	3	01a1f5c3-3ba7-7495-9d9d-5f9e0453c7fd	1795124575143225	1	before.to-bob.1	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f2d626f622e31222c22746f223a2240626f62222c22626f6479223a227468652074657874206f66206265666f72652e746f2d626f622e31222c22626f64795f76657273696f6e223a317d	\N	1826660575143225
13	1	3	01a1f5c3-3bae-74d9-9b54-a0c306989ebf	1795124575150188	1	before.topic.1	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f7069632e31222c22746f223a22236c6f67222c22626f6479223a227468652074657874206f66206265666f72652e746f7069632e31222c22626f64795f76657273696f6e223a317d	\N	1826660575150188
14	2	4	01a1f5c3-3bae-731c-9318-0ab45a667ee8	1795124575150188	2	before.to-ann.1	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f2d616e6e2e31222c22746f223a2240616e6e222c22626f6479223a227468652074657874206f66206265666f72652e746f2d616e6e2e31222c22626f64795f76657273696f6e223a317d	\N	1826660575150188
15	1	4	01a1f5c3-3bc1-77c1-9b1c-b5931ff811db	1795124575169137	3	before.post.1	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e706f73742e31222c22746f223a22236c6f67222c22626f6479223a227468652074657874206f66206265666f72652e706f73742e31222c22626f64795f76657273696f6e223a317d	\N	1826660575169137
17	2	5	01a1f5c3-3bef-7617-a4f1-9a7e33ce1410	1795124575215264	1	before.to-bob.2	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f2d626f622e32222c22746f223a2240626f62222c22626f6479223a227468652074657874206f66206265666f72652e746f2d626f622e32222c22626f64795f76657273696f6e223a317d	\N	1826660575215264
19	2	6	01a1f5c3-3bf7-7e18-a45b-859a84411642	1795124575223710	2	before.to-ann.2	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f2d616e6e2e32222c22746f223a2240616e6e222c22626f6479223a227468652074657874206f66206265666f72652e746f2d616e6e2e32222c22626f64795f76657273696f6e223a317d	\N	1826660575223710
20	1	5	01a1f5c3-3c10-7016-8052-29d68128d0b7	1795124575248180	1	before.topic.2	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e746f7069632e32222c22746f223a22236c6f67222c22626f6479223a227468652074657874206f66206265666f72652e746f7069632e32222c22626f64795f76657273696f6e223a317d	\N	1826660575248180
21	1	6	01a1f5c3-3c1a-7989-add4-7e02d8c4f58a	1795124575258558	3	before.post.2	\\x7b22636c69656e745f6d6573736167655f6964223a226265666f72652e706f73742e32222c22746f223a22236c6f67222c22626f6479223a227468652074657874206f66206265666f72652e706f73742e32222c22626f64795f76657273696f6e223a317d	\N	1826660575258558
23	2	7	01a1f5c3-3d42-737a-b119-1bbf22551a8d	1795124575554281	1	away.to-bob.0	\\x7b22636c69656e745f6d6573736167655f6964223a22617761792e746f2d626f622e30222c22746f223a2240626f62222c22626f6479223a227468652074657874206f6620617761792e746f2d626f622e30222c22626f64795f76657273696f6e223a317d	\N	1826660575554281
26	2	8	01a1f5c3-3db2-75c7-9b77-40124a0091c3	1795124575666702	1	away.to-bob.1	\\x7b22636c69656e745f6d6573736167655f6964223a22617761792e746f2d626f622e31222c22746f223a2240626f62222c22626f6479223a227468652074657874206f6620617761792e746f2d626f622e31222c22626f64795f76657273696f6e223a317d	\N	1826660575666702
27	2	9	01a1f5c3-3db2-7416-9f4f-97caafb60e9b	1795124575666703	1	away.to-bob.2	\\x7b22636c69656e745f6d6573736167655f6964223a22617761792e746f2d626f622e32222c22746f223a2240626f62222c22626f6479223a227468652074657874206f6620617761792e746f2d626f622e32222c22626f64795f76657273696f6e223a317d	\N	1826660575666703
\.


--
-- Data for Name: node; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.node (number, name, public_key, link_epoch, inbox_epoch, redelivered_upto, joined_at, last_seen_at, removed_at) FROM stdin;
1	ann	\\xe0bcde4c9d99c49028ed4ac5c2d4af11198d2cb228c90d3266282140db28d86f	1	7eba01ed7c48b26e	0	1795124572023839	1795124572030321	\N
2	bob	\\x1b46d09c0b67ae88e1417eff32f90c821d48d2f8061f23ff663b4222036e7f19	1	bb26a10f101b3336	0	1795124573336464	1795124573550324	\N
\.


--
-- Data for Name: nonce; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.nonce (value, until) FROM stdin;
\\x5c2abc1b26f1c31de0a979f49c37008d3fb2c9f22af8a1ec221e34eb2778242d	1795124871383339
\\xd2adbb3cf6cecef0886e500f5fffc73ef8bcb2a1484dd95fa495c76f43fa4ae9	1795124872016423
\\xeaed48a9a12acbbd67e3267a82d098c5ea3a2c11c737fdc511251ac406621e30	1795124872631643
\\x948394845ad2ea0cb7c47ff0fba3c2c8ef639d9be2869e5a0c85238c790f509b	1795124873155628
\.


--
-- Data for Name: outlived; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.outlived (client_message_id, message) FROM stdin;
\.


--
-- Data for Name: read_mark; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.read_mark (member, conversation, seq) FROM stdin;
\.


--
-- Data for Name: schema_version; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.schema_version (number, name, checksum) FROM stdin;
1	books	\\x34f206b3db4ed539c5bc6657c4dab2a52d7097556ed438964e039aa35030e8a0
2	webhooks	\\xe60c793d18b01b24a124b5c2f9f067ac6a88fc4a5ead8b21935944a8bfe0b905
3	chat	\\xec39d6d1d008ea69c77ee18728a9285a30eb508fc4e1a3fbcac3ca6f09a5a49f
4	hub	\\x993bcc79da087f85c52135b8f34e5823233599bfe24e1ce1281a1c57a2ddf1f7
5	outlived	\\x6d1827371bfe969327fcb1097be12330f5952f6d410f36ffddc48357b9355d56
6	dedupe_by_id	\\x183cc995e2b2ba8380e08cbbc835a7b4888d48d803ebbb03b04a576f0e694d89
7	mail	\\x1b6c4164453e71aa7d624c2bb46255aea3e9825ad68da97f8ef2f84a3b5a7651
8	lean	\\xeab897553afd81dd873bc91c1c00f51418d489dc950eb8556a4db1deeb367444
9	stretches	\\x86bff984f82cc676ea75c268a19c8ef120123a7213281ac24514ab67bf4c311f
\.


--
-- Data for Name: session; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.session (hash, member, created_at, expires_at, ended_at) FROM stdin;
\.


--
-- Data for Name: sign_in; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.sign_in (hash, member, expires_at, used_at) FROM stdin;
\.


--
-- Data for Name: socket_ticket; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.socket_ticket (hash, credential, expires_at, used_at) FROM stdin;
\.


--
-- Data for Name: subscription; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.subscription (conversation, member, since) FROM stdin;
1	1	1795124573768640
\.


--
-- Data for Name: ticket; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.ticket (hash, invite, node, public_key, aud, person, expires_at, used_at) FROM stdin;
\\x1a0df6abc1d2c7810f3eaed4096ca684fdaa02a5976553325fbd192aa639835a	\\x1c2c7b1333f4a439c4f8b95a1339c43fc327c78db59c2dac324371b4daae666f	ann	\\xe0bcde4c9d99c49028ed4ac5c2d4af11198d2cb228c90d3266282140db28d86f	postrider-link	ann	1795124601383339	\N
\\xa1e15ef4237f0aeccb6806c1367647d660268c30aea9a62231c80821b1bbcd82	\\x1c2c7b1333f4a439c4f8b95a1339c43fc327c78db59c2dac324371b4daae666f	ann	\\xe0bcde4c9d99c49028ed4ac5c2d4af11198d2cb228c90d3266282140db28d86f	postrider-link	ann	1795124602016423	1795124572023839
\\xf454e4f3bd4e7b92a4510ac0f81a0545852e7b0fc005f8ad3d4d97ca1f257902	\\xd3db081986531dc414fd7e7b6ee281936fb4dde8f50fc0e164571cc74c0facc6	bob	\\x1b46d09c0b67ae88e1417eff32f90c821d48d2f8061f23ff663b4222036e7f19	postrider-link	bob	1795124602631643	\N
\\x84a89a0eec60d27b999f4ce889defeb2f710c65614227d592493bf4bbb4ffa8c	\\xd3db081986531dc414fd7e7b6ee281936fb4dde8f50fc0e164571cc74c0facc6	bob	\\x1b46d09c0b67ae88e1417eff32f90c821d48d2f8061f23ff663b4222036e7f19	postrider-link	bob	1795124603155628	1795124573336464
\.


--
-- Data for Name: webhook; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.webhook (member, url, secret, old_secret, old_secret_until, created_at, served_at, disabled_at, disabled_reason) FROM stdin;
\.


--
-- Data for Name: webhook_call; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.webhook_call (member, conversation, message, attempts, next_attempt_at, lease_token, last_answer) FROM stdin;
\.


--
-- Name: api_token_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.api_token_number_seq', 2, true);


--
-- Name: conversation_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.conversation_number_seq', 2, true);


--
-- Name: member_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.member_number_seq', 4, true);


--
-- Name: message_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.message_number_seq', 27, true);


--
-- Name: node_number_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.node_number_seq', 2, true);


--
-- Name: api_token api_token_hash_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_hash_key UNIQUE (hash);


--
-- Name: api_token api_token_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_pkey PRIMARY KEY (number);


--
-- Name: challenge challenge_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.challenge
    ADD CONSTRAINT challenge_pkey PRIMARY KEY (hash);


--
-- Name: conversation conversation_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_id_key UNIQUE (id);


--
-- Name: conversation conversation_lo_hi_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_lo_hi_key UNIQUE (lo, hi);


--
-- Name: conversation conversation_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (number);


--
-- Name: conversation conversation_topic_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_topic_key UNIQUE (topic);


--
-- Name: dedupe dedupe_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.dedupe
    ADD CONSTRAINT dedupe_pkey PRIMARY KEY (client_message_id, sender_member_id, mesh);


--
-- Name: delivery delivery_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (message, recipient);


--
-- Name: escalation escalation_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.escalation
    ADD CONSTRAINT escalation_pkey PRIMARY KEY (conversation, rev);


--
-- Name: hub_head hub_head_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hub_head
    ADD CONSTRAINT hub_head_pkey PRIMARY KEY (kind);


--
-- Name: hub_record hub_record_kind_seq_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hub_record
    ADD CONSTRAINT hub_record_kind_seq_key UNIQUE (kind, seq);


--
-- Name: hub_record hub_record_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hub_record
    ADD CONSTRAINT hub_record_pkey PRIMARY KEY (kind, id);


--
-- Name: idem idem_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idem
    ADD CONSTRAINT idem_pkey PRIMARY KEY (principal, key);


--
-- Name: invite invite_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.invite
    ADD CONSTRAINT invite_pkey PRIMARY KEY (hash);


--
-- Name: issuer issuer_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.issuer
    ADD CONSTRAINT issuer_pkey PRIMARY KEY (key_id);


--
-- Name: mail mail_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mail
    ADD CONSTRAINT mail_pkey PRIMARY KEY (recipient, first);


--
-- Name: member member_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.member
    ADD CONSTRAINT member_id_key UNIQUE (id);


--
-- Name: member member_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.member
    ADD CONSTRAINT member_name_key UNIQUE (name);


--
-- Name: member member_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.member
    ADD CONSTRAINT member_pkey PRIMARY KEY (number);


--
-- Name: mention_index mention_index_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mention_index
    ADD CONSTRAINT mention_index_pkey PRIMARY KEY (member, message);


--
-- Name: mesh mesh_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.mesh
    ADD CONSTRAINT mesh_pkey PRIMARY KEY (number);


--
-- Name: message message_conversation_seq_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_conversation_seq_key UNIQUE (conversation, seq);


--
-- Name: message message_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_id_key UNIQUE (id);


--
-- Name: message message_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_pkey PRIMARY KEY (number);


--
-- Name: node node_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_name_key UNIQUE (name);


--
-- Name: node node_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (number);


--
-- Name: node node_public_key_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_public_key_key UNIQUE (public_key);


--
-- Name: nonce nonce_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.nonce
    ADD CONSTRAINT nonce_pkey PRIMARY KEY (value);


--
-- Name: outlived outlived_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.outlived
    ADD CONSTRAINT outlived_pkey PRIMARY KEY (client_message_id, message);


--
-- Name: read_mark read_mark_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.read_mark
    ADD CONSTRAINT read_mark_pkey PRIMARY KEY (member, conversation);


--
-- Name: schema_version schema_version_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (number);


--
-- Name: session session_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (hash);


--
-- Name: sign_in sign_in_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sign_in
    ADD CONSTRAINT sign_in_pkey PRIMARY KEY (hash);


--
-- Name: socket_ticket socket_ticket_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.socket_ticket
    ADD CONSTRAINT socket_ticket_pkey PRIMARY KEY (hash);


--
-- Name: subscription subscription_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (conversation, member);


--
-- Name: ticket ticket_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_pkey PRIMARY KEY (hash);


--
-- Name: webhook_call webhook_call_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_call
    ADD CONSTRAINT webhook_call_pkey PRIMARY KEY (member, conversation);


--
-- Name: webhook webhook_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (member);


--
-- Name: conversation_awaiting; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conversation_awaiting ON public.conversation USING btree (number) WHERE (awaiting_seq IS NOT NULL);


--
-- Name: conversation_hi; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX conversation_hi ON public.conversation USING btree (hi) WHERE (hi IS NOT NULL);


--
-- Name: dedupe_expires; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX dedupe_expires ON public.dedupe USING btree (expires_at) WHERE (expires_at IS NOT NULL);


--
-- Name: dedupe_pruned; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX dedupe_pruned ON public.dedupe USING btree (broker_message_id) WHERE ((NOT history_available) AND (broker_message_id IS NOT NULL));


--
-- Name: delivery_push; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX delivery_push ON public.delivery USING btree (recipient, rung, push_conversation, message) WHERE ((push_conversation IS NOT NULL) AND ((rung = 1) OR (rung = 3)));


--
-- Name: delivery_receipt; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX delivery_receipt ON public.delivery USING btree (sender, message) WHERE (rung > rung_told);


--
-- Name: escalation_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX escalation_at ON public.escalation USING btree (at);


--
-- Name: idem_expires; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idem_expires ON public.idem USING btree (expires_at);


--
-- Name: member_home; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX member_home ON public.member USING btree (home) WHERE (home IS NOT NULL);


--
-- Name: member_person; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX member_person ON public.member USING btree (home) WHERE ((kind = 0) AND (home IS NOT NULL));


--
-- Name: mention_message; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX mention_message ON public.mention_index USING btree (message);


--
-- Name: message_deliver_by; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX message_deliver_by ON public.message USING btree (deliver_by) WHERE (deliver_by IS NOT NULL);


--
-- Name: subscription_member; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX subscription_member ON public.subscription USING btree (member);


--
-- Name: ticket_invite; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ticket_invite ON public.ticket USING btree (invite) WHERE (invite IS NOT NULL);


--
-- Name: api_token api_token_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_member_fkey FOREIGN KEY (member) REFERENCES public.member(number);


--
-- Name: challenge challenge_node_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.challenge
    ADD CONSTRAINT challenge_node_fkey FOREIGN KEY (node) REFERENCES public.node(number);


--
-- Name: conversation conversation_hi_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_hi_fkey FOREIGN KEY (hi) REFERENCES public.member(number);


--
-- Name: conversation conversation_lo_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_lo_fkey FOREIGN KEY (lo) REFERENCES public.member(number);


--
-- Name: escalation escalation_conversation_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.escalation
    ADD CONSTRAINT escalation_conversation_fkey FOREIGN KEY (conversation) REFERENCES public.conversation(number);


--
-- Name: hub_record hub_record_kind_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hub_record
    ADD CONSTRAINT hub_record_kind_fkey FOREIGN KEY (kind) REFERENCES public.hub_head(kind);


--
-- Name: member member_home_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.member
    ADD CONSTRAINT member_home_fkey FOREIGN KEY (home) REFERENCES public.node(number);


--
-- Name: read_mark read_mark_conversation_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.read_mark
    ADD CONSTRAINT read_mark_conversation_fkey FOREIGN KEY (conversation) REFERENCES public.conversation(number);


--
-- Name: read_mark read_mark_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.read_mark
    ADD CONSTRAINT read_mark_member_fkey FOREIGN KEY (member) REFERENCES public.member(number);


--
-- Name: session session_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_member_fkey FOREIGN KEY (member) REFERENCES public.member(number);


--
-- Name: sign_in sign_in_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sign_in
    ADD CONSTRAINT sign_in_member_fkey FOREIGN KEY (member) REFERENCES public.member(number);


--
-- Name: subscription subscription_conversation_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_conversation_fkey FOREIGN KEY (conversation) REFERENCES public.conversation(number);


--
-- Name: subscription subscription_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.subscription
    ADD CONSTRAINT subscription_member_fkey FOREIGN KEY (member) REFERENCES public.member(number);


--
-- Name: ticket ticket_invite_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ticket
    ADD CONSTRAINT ticket_invite_fkey FOREIGN KEY (invite) REFERENCES public.invite(hash);


--
-- Name: webhook_call webhook_call_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_call
    ADD CONSTRAINT webhook_call_member_fkey FOREIGN KEY (member) REFERENCES public.webhook(member);


--
-- Name: webhook webhook_member_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_member_fkey FOREIGN KEY (member) REFERENCES public.member(number);


--
-- PostgreSQL database dump complete
--

\unrestrict zJpKYC0IQzRWyC4iE50Aqu4lYTq7SsfYt6rqqM6HbFLwdRrOPca4tQnsz5VcfyI

