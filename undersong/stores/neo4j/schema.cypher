// Constraints and indexes; each statement does nothing where its object is there.

CREATE CONSTRAINT agent_unique IF NOT EXISTS FOR (n:Agent) REQUIRE (n.agent_id) IS UNIQUE;
CREATE CONSTRAINT evaluation_unique IF NOT EXISTS FOR (n:Evaluation) REQUIRE (n.evaluation_id) IS UNIQUE;
CREATE CONSTRAINT message_unique IF NOT EXISTS FOR (n:Message) REQUIRE (n.thread_id, n.message_id) IS UNIQUE;
CREATE CONSTRAINT thread_unique IF NOT EXISTS FOR (n:Thread) REQUIRE (n.thread_id) IS UNIQUE;
CREATE CONSTRAINT indicator_unique IF NOT EXISTS FOR (n:Indicator) REQUIRE (n.indicator_id) IS UNIQUE;
CREATE CONSTRAINT trait_unique IF NOT EXISTS FOR (n:Trait) REQUIRE (n.name) IS UNIQUE;
CREATE CONSTRAINT dimension_unique IF NOT EXISTS FOR (n:Dimension) REQUIRE (n.name) IS UNIQUE;
CREATE CONSTRAINT pattern_unique IF NOT EXISTS FOR (n:Pattern) REQUIRE (n.name) IS UNIQUE;
CREATE CONSTRAINT judge_unique IF NOT EXISTS FOR (n:Judge) REQUIRE (n.judge_hash) IS UNIQUE;
CREATE CONSTRAINT cursor_unique IF NOT EXISTS FOR (n:Cursor) REQUIRE (n.name) IS UNIQUE;
CREATE CONSTRAINT grave_unique IF NOT EXISTS FOR (n:Grave) REQUIRE (n.kind, n.digest) IS UNIQUE;
CREATE CONSTRAINT finding_node_unique IF NOT EXISTS FOR (n:Finding) REQUIRE (n.finding_id) IS UNIQUE;
CREATE CONSTRAINT finding_unique IF NOT EXISTS FOR ()-[r:EXHIBITS_PATTERN]-() REQUIRE r.finding_id IS UNIQUE;
CREATE CONSTRAINT lead_unique IF NOT EXISTS FOR (n:Lead) REQUIRE (n.lead_id) IS UNIQUE;
CREATE CONSTRAINT claim_unique IF NOT EXISTS FOR (n:Claim) REQUIRE (n.claim_id) IS UNIQUE;
CREATE CONSTRAINT review_unique IF NOT EXISTS FOR (n:Review) REQUIRE (n.key) IS UNIQUE;

CREATE INDEX claim_thread IF NOT EXISTS FOR (n:Claim) ON (n.thread_id);
CREATE INDEX review_of IF NOT EXISTS FOR (n:Review) ON (n.kind, n.of);
CREATE INDEX evaluation_thread IF NOT EXISTS FOR (n:Evaluation) ON (n.thread_id, n.judge_hash);
CREATE INDEX evaluation_target IF NOT EXISTS FOR (n:Evaluation) ON (n.target);
CREATE INDEX message_id IF NOT EXISTS FOR (n:Message) ON (n.message_id);
CREATE INDEX message_agent IF NOT EXISTS FOR (n:Message) ON (n.agent_id);
CREATE INDEX message_target IF NOT EXISTS FOR (n:Message) ON (n.target);
CREATE INDEX judged_by_changed IF NOT EXISTS FOR ()-[n:JUDGED_BY]-() ON (n.changed);
