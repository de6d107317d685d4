import { Pool } from 'pg';
import { createAgent } from 'runchart';
import { openai } from 'runchart/openai';
import { postgresStore } from 'runchart/postgres';

const model = openai(process.env.OPENAI_MODEL ?? 'gpt-5.2');

// #region store
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const store = postgresStore(pool);
const agent = createAgent({ model, store });

const conversation = await agent.open('rent');
console.log((await conversation.send('Pay the rent.').result).text);

await agent.close();
await store.close();
await pool.end();
// #endregion
