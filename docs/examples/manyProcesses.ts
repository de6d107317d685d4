/** One of many processes that serve the same conversations. It needs a database, and the packages `openai` and `pg`. */
// #region process
import { createServer } from 'node:http';
import { Pool } from 'pg';
import { createAgent } from 'runchart';
import { openai } from 'runchart/openai';
import { postgresStore } from 'runchart/postgres';
import { createHandlers, nodeHandler } from 'runchart/transports';

const model = openai(process.env.OPENAI_MODEL ?? 'gpt-5.2');
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const store = postgresStore(pool);
const agent = createAgent({ model, store, policies: { onRestart: 'resume' } });
// Replace this with your own check of a session or a token.
const handler = createHandlers(agent, { authorize: () => ({ by: 'ada', owner: 'ada' }) });
const server = createServer(nodeHandler(handler)).listen(Number(process.env.PORT ?? 8080));

process.once('SIGTERM', async () => {
  server.close();
  server.closeAllConnections();
  await agent.close();
  await store.close();
  await pool.end();
});
// #endregion
