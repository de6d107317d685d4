/** A worker and a client of a Restate server with PostgreSQL beside it. It needs both, and the packages `openai` and `pg`. */
// #region shared
import { Pool } from 'pg';
import { createAgent } from 'runchart';
import { openai } from 'runchart/openai';
import { blobTable, notifyHub, restateAgent, serveAgent } from 'runchart/restate';

const pool = new Pool({ connectionString: process.env.DATABASE_URL, keepAlive: true });
const shared = { hub: notifyHub(pool), store: blobTable(pool) };
// #endregion

// #region worker
const agent = createAgent({ model: openai(process.env.OPENAI_MODEL ?? 'gpt-5.2') });
await serveAgent(agent, { port: 9080, admin: 'http://127.0.0.1:9070', ...shared });
// #endregion

// #region client
const remote = restateAgent({ ingress: 'http://127.0.0.1:8080', ...shared });
for (const { id, title, status } of await remote.list({ owner: 'ada', limit: 20 })) console.log(id, title, status);
// #endregion
