/** One of the processes that serve one address: an agent over PostgreSQL with its handlers. It prints its port. Its model answers slowly. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'pg';
import { createAgent, type Model, type ModelPart } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { createHandlers, nodeHandler } from '../../../src/transports/index.ts';

const { HOST = '', PORT = '5432', LEASE_MS = '1000', SCHEMA = 'processes', PAUSE_MS = '30' } = process.env;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const model: Model = {
  id: 'slow',
  async *stream({ messages }): AsyncGenerator<ModelPart> {
    const last = JSON.stringify(messages.at(-1));
    // A message with the word `silent` is answered only by a process that resumes its run.
    if (last.includes('silent') && process.env.SILENT === '1') await new Promise(() => {});
    for (const word of ['Answer', ' to', ' you.']) {
      await pause(Number(PAUSE_MS));
      yield { type: 'text-delta', text: word };
    }
    yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
  },
};

const pool = new Pool({
  ...{ host: HOST, port: Number(PORT), user: 'runchart', database: 'postgres', max: 6 },
  // A test reads in the database which process has opened a conversation.
  application_name: `${process.pid}`,
});
const store = postgresStore(pool, { leaseMs: Number(LEASE_MS), schema: SCHEMA });
const agent = createAgent({ model, store, policies: { onRestart: 'resume' } });
const server = createServer(nodeHandler(createHandlers(agent, { authorize: () => true, beatMs: 1000 })) as never);
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
