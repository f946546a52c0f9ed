// The statements of the store, each under its name; $items is a portion of a list.

// turn: taken by every write, so that one follows the other
MERGE (c:Cursor {name: 'changes'}) ON CREATE SET c.change = 0, c.agent = '' SET c.held = true

// version: of the graph's layout; a new graph has the newest
MERGE (c:Cursor {name: 'version'}) ON CREATE SET c.change = $version RETURN c.change

// put_version
MATCH (c:Cursor {name: 'version'}) SET c.change = $version

// components: of the server
CALL dbms.components() YIELD name, versions RETURN name, versions[0] AS version

// next_version: a number that no conversation had before
MERGE (c:Cursor {name: 'versions'}) ON CREATE SET c.change = 0, c.agent = ''
SET c.change = c.change + 1 RETURN c.change AS version

// content_nodes: all that is stored
MATCH (n) WHERE any(label IN labels(n) WHERE label IN $labels) RETURN elementId(n), labels(n), properties(n)

// content_relationships
MATCH (n)-[r]->(m) WHERE any(label IN labels(n) WHERE label IN $labels)
RETURN elementId(n), type(r), properties(r), elementId(m), coalesce(m.indicator_id, m.name)


// ---------- conversations

// put_thread
MERGE (t:Thread {thread_id: $thread})
SET t.body = $body, t.scans = $scans, t.title = coalesce($title, $thread), t.version = $version REMOVE t.routes, t.named

// put_named
MATCH (t:Thread {thread_id: $thread}) SET t.named = $named

// put_messages
MATCH (t:Thread {thread_id: $thread})
UNWIND $items AS item
MERGE (m:Message {thread_id: $thread, message_id: item.message_id})
SET m += item
MERGE (m)-[:IN]->(t)

// drop_other_messages
MATCH (m:Message {thread_id: $thread}) WHERE NOT m.message_id IN $ids DETACH DELETE m

// texts: of every message, where an older layout had none
MATCH (m:Message) WHERE m.body IS NOT NULL AND m.text IS NULL RETURN m.thread_id AS thread, m.message_id AS id, m.body AS body

// put_texts
UNWIND $items AS item MATCH (m:Message {thread_id: item.thread, message_id: item.message_id}) SET m += item.properties

// put_answers
UNWIND $items AS item
MERGE (e:Evaluation {evaluation_id: item.evaluation_id})
SET e += item
WITH e MATCH (m:Message {thread_id: e.thread_id, message_id: e.message_id})
MERGE (e)-[:OF]->(m)

// put_routes
UNWIND $items AS item MATCH (t:Thread {thread_id: item.thread}) SET t.routes = item.routes

// conversation
MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL
OPTIONAL MATCH (m:Message)-[:IN]->(t) WHERE m.body IS NOT NULL
RETURN t.body AS head, t.scans AS scans, collect(m.body) AS messages

// conversations
MATCH (t:Thread) WHERE t.body IS NOT NULL RETURN t.thread_id

// length
MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL
RETURN COUNT { (m:Message)-[:IN]->(t) WHERE m.body IS NOT NULL }

// message_bodies
MATCH (m:Message {thread_id: $thread}) WHERE m.body IS NOT NULL RETURN m.message_id, m.body

// messages
UNWIND $ids AS id MATCH (m:Message {thread_id: $thread, message_id: id}) RETURN m.body AS body

// answers
MATCH (e:Evaluation {thread_id: $thread, judge_hash: $judge}) WHERE e.answer IS NOT NULL RETURN e.answer

// routes
MATCH (t:Thread {thread_id: $thread}) WHERE t.routes IS NOT NULL RETURN t.routes

// evaluations
MATCH (e:Evaluation {thread_id: $thread}) WHERE e.answer IS NOT NULL
AND ($message IS NULL OR e.message_id = $message) RETURN e.answer

// conversations_with
MATCH (m:Message {agent_id: $agent}) RETURN DISTINCT m.thread_id AS name
UNION MATCH (m:Message {target: $agent}) RETURN DISTINCT m.thread_id AS name

// find_message
MATCH (m:Message {message_id: $message}) WHERE m.body IS NOT NULL RETURN m.thread_id


// ---------- live runs

// thread_versions
UNWIND $items AS id OPTIONAL MATCH (t:Thread {thread_id: id}) RETURN id, coalesce(t.version, 0) AS number

// agent_versions
UNWIND $items AS id OPTIONAL MATCH (:Agent {agent_id: id})-[r:JUDGED_BY]->(:Judge {judge_hash: $judge})
RETURN id, coalesce(r.changed, 0) AS number

// live_thread
MATCH (t:Thread {thread_id: $thread}) WHERE t.body IS NOT NULL RETURN t.named AS named, t.routes AS routes


// ---------- histories

// changed_agents
MATCH (j:Judge {judge_hash: $judge})<-[r:JUDGED_BY]-(a:Agent)
WHERE r.changed <= $last AND (r.changed > $change OR (r.changed = $change AND a.agent_id > $agent))
AND ($least = 0 OR COUNT { (a)-[:EVALUATED]->(e:Evaluation {judge_hash: $judge, state: 'scored'}) } >= $least)
RETURN a.agent_id AS agent, r.changed AS changed ORDER BY changed, agent LIMIT $page

// rows_of_agents
UNWIND $agents AS agent
MATCH (:Agent {agent_id: agent})-[:EVALUATED]->(e:Evaluation {judge_hash: $judge}) WHERE e.body IS NOT NULL
RETURN agent, collect(e.body) AS bodies

// rows_of_thread
MATCH (e:Evaluation {thread_id: $thread, judge_hash: $judge}) WHERE e.body IS NOT NULL RETURN e.body

// rows_aimed_at
MATCH (e:Evaluation {target: $agent}) WHERE e.body IS NOT NULL RETURN e.body

// threads
MATCH (e:Evaluation) WHERE e.body IS NOT NULL RETURN DISTINCT e.thread_id

// agents
MATCH (a:Agent)-[:JUDGED_BY]->(:Judge {judge_hash: $judge})
MATCH (a)-[:EVALUATED]->(e:Evaluation {judge_hash: $judge}) WHERE e.body IS NOT NULL
RETURN a.agent_id AS agent, count(e) AS messages, count(DISTINCT e.thread_id) AS threads,
sum(CASE e.state WHEN 'scored' THEN 1 ELSE 0 END) AS read,
sum(CASE e.scale WHEN 'rank' THEN 1 ELSE 0 END) AS ranked, min(e.time) AS first, max(e.time) AS last

// judges
MATCH (j:Judge) OPTIONAL MATCH (j)<-[r:JUDGED_BY]-(a:Agent)-[:EVALUATED]->(e:Evaluation {judge_hash: j.judge_hash})
WHERE e.body IS NOT NULL
RETURN j.judge_hash AS judge_hash, j.name AS judge, count(e) AS rows, min(r.changed) AS first
ORDER BY first, judge_hash

// cursor
MATCH (c:Cursor {name: $name}) RETURN c.change, c.agent

// put_cursors
UNWIND $items AS item MERGE (c:Cursor {name: item.name}) SET c.change = item.change, c.agent = item.agent

// unchanged_agents
UNWIND $items AS item MATCH (:Agent {agent_id: item.agent})-[r:JUDGED_BY]->(:Judge {judge_hash: $judge})
WHERE r.changed = item.changed
RETURN item.agent AS agent

// judges_of_agents
UNWIND $items AS agent MATCH (:Agent {agent_id: agent})-[:JUDGED_BY]->(j) RETURN agent, j.judge_hash


// ---------- findings

// put_findings
UNWIND $items AS item
MERGE (a:Agent {agent_id: item.agent})
MERGE (p:Pattern {name: item.name}) ON CREATE SET p.title = item.title, p.rule = item.properties.rule
MERGE (a)-[r:EXHIBITS_PATTERN {finding_id: item.id}]->(p)
ON CREATE SET r.detected_at = $now
SET r += item.properties
WITH r, item
CALL {
  WITH item
  UNWIND item.ends AS end
  OPTIONAL MATCH (e:Evaluation {thread_id: end[0], message_id: end[1]})
  WHERE e.judge IN item.judges OR size(item.judges) = 0
  WITH end, min(e.evaluation_id) AS id ORDER BY end[2]
  RETURN collect(coalesce(id, '')) AS ids
}
SET r.start_eval_id = ids[0], r.end_eval_id = ids[1]

// put_finding_nodes: a finding with the evaluations that it rests on, in their order
UNWIND $items AS item
MATCH (a:Agent {agent_id: item.agent}), (p:Pattern {name: item.name})
MERGE (f:Finding {finding_id: item.id})
SET f = item.about, f.finding_id = item.id
MERGE (a)-[:HAS_FINDING]->(f)
MERGE (f)-[:MATCHES]->(p)
WITH f, item
CALL { WITH f MATCH (f)-[old:RESTS_ON]->() DELETE old }
WITH f, item UNWIND item.stages AS stage
MATCH (e:Evaluation {thread_id: stage[0], message_id: stage[1]})
WHERE e.judge IN item.judges OR size(item.judges) = 0
CREATE (f)-[:RESTS_ON {place: stage[2], stage: stage[3]}]->(e)

// drop_findings
UNWIND $items AS id MATCH ()-[r:EXHIBITS_PATTERN {finding_id: id}]->() DELETE r

// drop_finding_nodes
UNWIND $items AS id MATCH (f:Finding {finding_id: id}) DETACH DELETE f

// agents_with_findings
UNWIND $items AS id MATCH (a:Agent)-[:EXHIBITS_PATTERN {finding_id: id}]->() RETURN DISTINCT a.agent_id AS agent

// count_findings_of
UNWIND $items AS name MATCH (a:Agent {agent_id: name})
SET a.findings = COUNT { (a)-[:EXHIBITS_PATTERN]->() },
a.likely_findings = COUNT { (a)-[r:EXHIBITS_PATTERN]->() WHERE r.confidence >= 0.5 }

// findings_by_patterns
UNWIND $items AS agent MATCH (:Agent {agent_id: agent})-[r:EXHIBITS_PATTERN]->() WHERE r.rule IN $patterns
RETURN r.finding_id AS id

// finding_bodies
MATCH (a:Agent)-[r:EXHIBITS_PATTERN]->() RETURN r.finding_id AS id, a.agent_id AS agent, r.body AS body

// finding_ids
MATCH (:Agent)-[r:EXHIBITS_PATTERN]->() WHERE r.body IS NOT NULL RETURN r.finding_id

// findings
MATCH (a:Agent)-[r:EXHIBITS_PATTERN]->() WHERE r.body IS NOT NULL
AND ($agent IS NULL OR a.agent_id = $agent) RETURN r.body ORDER BY r.finding_id

// finding
MATCH (f:Finding {finding_id: $id})<-[:HAS_FINDING]-(a:Agent)-[r:EXHIBITS_PATTERN {finding_id: $id}]->()
WHERE r.body IS NOT NULL RETURN r.body


// ---------- leads, claims and reviews

// put_leads
UNWIND $items AS item MERGE (l:Lead {lead_id: item.lead_id}) SET l = item

// drop_leads
UNWIND $items AS id MATCH (l:Lead {lead_id: id}) DETACH DELETE l

// leads
MATCH (l:Lead) WHERE $agent IS NULL OR l.agent_id = $agent RETURN l.body AS body

// lead
MATCH (l:Lead {lead_id: $id}) RETURN l.body

// put_claims: linked with their messages
UNWIND $items AS item
MERGE (c:Claim {claim_id: item.claim_id}) SET c = item
WITH c MATCH (m:Message {thread_id: c.thread_id, message_id: c.message_id})
MERGE (c)-[:IN]->(m)

// drop_claims
UNWIND $items AS id MATCH (c:Claim {claim_id: id}) DETACH DELETE c

// drop_claims_of
UNWIND $items AS name MATCH (c:Claim {thread_id: name}) DETACH DELETE c

// claims
MATCH (c:Claim) WHERE $thread IS NULL OR c.thread_id = $thread
RETURN c.body ORDER BY c.thread_id, c.position, c.claim_id

// claim
MATCH (c:Claim {claim_id: $id}) RETURN c.body

// put_reviews: a review that is there stays as it is
UNWIND $items AS item
MERGE (r:Review {key: item.key}) ON CREATE SET r = item

// drop_reviews
UNWIND $items AS key MATCH (r:Review {key: key}) DETACH DELETE r

// reviews
MATCH (r:Review) WHERE ($kind IS NULL OR r.kind = $kind) AND ($of IS NULL OR r.of = $of)
RETURN r.body ORDER BY r.time, r.key


// ---------- rows, and PRECEDES between them

// stored_rows
UNWIND $items AS id MATCH (e:Evaluation {evaluation_id: id})
RETURN id, e.agent_id AS agent, e.state AS state, e.body AS body, e.time AS time

// create_rows
UNWIND $items AS item
MERGE (a:Agent {agent_id: item.properties.agent_id})
MERGE (t:Thread {thread_id: item.properties.thread_id}) ON CREATE SET t.title = t.thread_id
MERGE (m:Message {thread_id: item.properties.thread_id, message_id: item.properties.message_id})
MERGE (m)-[:IN]->(t)
CREATE (e:Evaluation {evaluation_id: item.id})
SET e += item.properties, e += item.traits
CREATE (e)-[:OF]->(m)
CREATE (a)-[:EVALUATED]->(e)

// merge_rows
UNWIND $items AS item
MERGE (a:Agent {agent_id: item.properties.agent_id})
MERGE (t:Thread {thread_id: item.properties.thread_id}) ON CREATE SET t.title = t.thread_id
MERGE (m:Message {thread_id: item.properties.thread_id, message_id: item.properties.message_id})
MERGE (m)-[:IN]->(t)
MERGE (e:Evaluation {evaluation_id: item.id})
SET e += item.properties, e += item.traits
MERGE (e)-[:OF]->(m)
MERGE (a)-[:EVALUATED]->(e)

// summarise_agents: what one judge read of an agent, for people and their queries
UNWIND $items AS item
MATCH (a:Agent {agent_id: item.agent})
OPTIONAL MATCH (a)-[:EVALUATED]->(e:Evaluation {judge_hash: item.judge}) WHERE e.body IS NOT NULL
WITH a, item, count(e) AS messages, sum(CASE e.state WHEN 'scored' THEN 1 ELSE 0 END) AS evaluations,
count(DISTINCT e.thread_id) AS threads, min(e.created_at) AS first, max(e.created_at) AS last,
avg(CASE e.state WHEN 'scored' THEN e.trait_virtue END) AS virtue,
avg(CASE e.state WHEN 'scored' THEN e.trait_goodwill END) AS goodwill,
avg(CASE e.state WHEN 'scored' THEN e.trait_manipulation END) AS manipulation,
avg(CASE e.state WHEN 'scored' THEN e.trait_deception END) AS deception,
avg(CASE e.state WHEN 'scored' THEN e.trait_accuracy END) AS accuracy,
avg(CASE e.state WHEN 'scored' THEN e.trait_reasoning END) AS reasoning,
avg(CASE e.state WHEN 'scored' THEN e.trait_fabrication END) AS fabrication,
avg(CASE e.state WHEN 'scored' THEN e.trait_broken_logic END) AS broken_logic,
avg(CASE e.state WHEN 'scored' THEN e.trait_recognition END) AS recognition,
avg(CASE e.state WHEN 'scored' THEN e.trait_compassion END) AS compassion,
avg(CASE e.state WHEN 'scored' THEN e.trait_dismissal END) AS dismissal,
avg(CASE e.state WHEN 'scored' THEN e.trait_exploitation END) AS exploitation
SET a.name = a.agent_id, a.judge_hash = item.judge, a.messages = messages, a.evaluations = evaluations,
a.threads = threads, a.first_seen = first, a.last_seen = last,
a.avg_virtue = virtue,
a.avg_goodwill = goodwill,
a.avg_manipulation = manipulation,
a.avg_deception = deception,
a.avg_accuracy = accuracy,
a.avg_reasoning = reasoning,
a.avg_fabrication = fabrication,
a.avg_broken_logic = broken_logic,
a.avg_recognition = recognition,
a.avg_compassion = compassion,
a.avg_dismissal = dismissal,
a.avg_exploitation = exploitation

// all_histories
MATCH (a:Agent)-[:JUDGED_BY]->(j:Judge) RETURN a.agent_id AS agent, j.judge_hash AS judge

// put_judges
UNWIND $items AS item MERGE (j:Judge {judge_hash: item.hash}) ON CREATE SET j.name = item.name

// put_indicators
UNWIND $items AS item MATCH (e:Evaluation {evaluation_id: item.id})
MERGE (i:Indicator {indicator_id: item.indicator})
MERGE (e)-[d:DETECTED]->(i) SET d.confidence = item.confidence

// unlink_rows
UNWIND $items AS id MATCH (e:Evaluation {evaluation_id: id})
OPTIONAL MATCH (e)-[r:DETECTED|PRECEDES]-() DELETE r
WITH DISTINCT e OPTIONAL MATCH (:Agent)-[r:EVALUATED]->(e) DELETE r

// rows_of_messages
UNWIND $items AS item MATCH (e:Evaluation {thread_id: item.thread, message_id: item.message})
WHERE e.body IS NOT NULL RETURN e.evaluation_id AS id, e.agent_id AS agent, e.judge_hash AS judge,
e.time AS time

// forget_rows: an Evaluation with an answer stays for it
UNWIND $items AS id MATCH (e:Evaluation {evaluation_id: id})
REMOVE e.body, e.state, e.agent_id, e.target
FOREACH (nothing IN CASE WHEN e.answer IS NULL THEN [1] ELSE [] END | DETACH DELETE e)

// all_rows
MATCH (e:Evaluation) WHERE e.body IS NOT NULL RETURN e.evaluation_id AS id, e.body AS body

// rescale
UNWIND $items AS item MATCH (e:Evaluation {evaluation_id: item.id}) SET e.scale = item.scale, e += item.traits

// bump: $never is a time before any
MATCH (c:Cursor {name: 'changes'}) SET c.change = c.change + 1
WITH c.change AS now UNWIND $items AS item
MATCH (j:Judge {judge_hash: item.judge})
MERGE (a:Agent {agent_id: item.agent})
MERGE (a)-[r:JUDGED_BY]->(j) ON CREATE SET r.last_id = '', r.last_time = $never
WITH now, item, r, r.last_id AS before,
item.first > r.last_time AND (r.last_id = '' OR EXISTS { (:Evaluation {evaluation_id: r.last_id}) }) AS follows
SET r.changed = now
FOREACH (_ IN CASE WHEN follows THEN [1] ELSE [] END | SET r.last_id = item.last_id, r.last_time = item.last_time)
RETURN item.agent AS agent, item.judge AS judge, before, coalesce(follows, false) AS follows

// follow: rows that come behind all others
UNWIND $items AS names UNWIND range(0, size(names) - 1) AS i
MATCH (e:Evaluation {evaluation_id: names[i]})
WITH names, i, e ORDER BY names, i
WITH names, collect(e) AS chain UNWIND range(1, size(chain) - 1) AS i
WITH chain[i - 1] AS e, chain[i] AS next
CREATE (e)-[:PRECEDES]->(next)

// chain: a history again, from a time on
UNWIND $items AS item
MATCH (:Agent {agent_id: item.agent})-[:EVALUATED]->(e:Evaluation {judge_hash: item.judge, state: 'scored'})
WITH item, e ORDER BY e.time, e.position, e.message_id, e.thread_id
WITH item, e.sequence AS sequence, collect(e) AS chain
UNWIND range(0, size(chain) - 1) AS i
WITH item, chain[i] AS e, chain[i + 1] AS next
WHERE item.since IS NULL OR e.time IS NULL OR coalesce(next.time, e.time) >= item.since
OPTIONAL MATCH (e)-[old:PRECEDES]->(other) WHERE next IS NULL OR other <> next
DELETE old
WITH DISTINCT e, next WHERE next IS NOT NULL
MERGE (e)-[:PRECEDES]->(next)

// last_rows
UNWIND $items AS item
MATCH (a:Agent {agent_id: item.agent})-[r:JUDGED_BY]->(:Judge {judge_hash: item.judge})
OPTIONAL MATCH (a)-[:EVALUATED]->(e:Evaluation {judge_hash: item.judge, state: 'scored', sequence: ''})
WITH r, e ORDER BY e.time, e.position, e.message_id, e.thread_id
WITH r, last(collect(e)) AS e
SET r.last_id = coalesce(e.evaluation_id, ''), r.last_time = coalesce(e.time, $never)


// ---------- the whole store

// count_conversations
MATCH (t:Thread) WHERE t.body IS NOT NULL RETURN count(t)

// count_messages
MATCH (m:Message) WHERE m.body IS NOT NULL RETURN count(m)

// count_evaluations
MATCH (e:Evaluation) WHERE e.answer IS NOT NULL RETURN count(e)

// count_findings
MATCH ()-[r:EXHIBITS_PATTERN]->() WHERE r.body IS NOT NULL RETURN count(r)

// rows_without_agent
MATCH (e:Evaluation) WHERE e.body IS NOT NULL AND NOT (e)<-[:EVALUATED]-() RETURN e.evaluation_id

// drop_threads
UNWIND $items AS name
CALL { WITH name MATCH (n:Message {thread_id: name}) DETACH DELETE n }
CALL { WITH name MATCH (n:Evaluation {thread_id: name}) DETACH DELETE n }
CALL { WITH name MATCH (n:Thread {thread_id: name}) DETACH DELETE n }

// drop_answers
UNWIND $items AS place MATCH (e:Evaluation {thread_id: place[0], message_id: place[1]}) DETACH DELETE e

// drop_agent
OPTIONAL MATCH (c:Cursor {agent: $name}) SET c.agent = ''
WITH DISTINCT $name AS name
MATCH (a:Agent {agent_id: name}) WHERE NOT (a)-[:EVALUATED]->() DETACH DELETE a

// put_tombstone
MERGE (g:Grave {kind: $kind, digest: $digest}) ON CREATE SET g.body = $body

// tombstones
MATCH (g:Grave) RETURN g.body ORDER BY g.kind, g.digest


// ---------- the taxonomy

// put_traits
UNWIND $items AS item
MERGE (d:Dimension {name: item.dimension})
MERGE (t:Trait {name: item.name}) SET t.polarity = item.polarity, t.value = item.value
MERGE (t)-[:BELONGS_TO]->(d)

// put_indicator_types
UNWIND $items AS item
MATCH (t:Trait {name: item.trait})
MERGE (i:Indicator {indicator_id: item.id})
SET i.name = item.name, i.description = item.description, i.sequence_only = item.sequence_only
MERGE (i)-[:BELONGS_TO]->(t)

// put_patterns
UNWIND $items AS item
MERGE (p:Pattern {name: item.name})
SET p.rule = item.rule, p.title = item.title, p.level = item.level, p.pattern_id = item.id, p.aliases = item.aliases
WITH p, item
FOREACH (id IN item.indicators | MERGE (i:Indicator {indicator_id: id}) MERGE (p)-[:COMPOSED_OF]->(i))
FOREACH (id IN item.sets | MERGE (i:Indicator {indicator_id: id}) MERGE (p)-[:SETS]->(i))

// traits: none before the taxonomy is there
MATCH (t:Trait) RETURN count(t) AS traits
