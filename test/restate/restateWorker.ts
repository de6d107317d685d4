/** A worker of the tests, in a process of its own. It prints its address. */
import { Pool } from 'pg';
import { blobDirectory, notifyHub, serveAgent } from '../../src/restate/index.ts';
import { postgresStore } from '../../src/stores/postgres/postgresStore.ts';
import { agent, values } from './workerAgent.ts';

function database(host: string) {
  const pool = new Pool({ host, user: 'runchart', database: 'postgres' });
  return { hub: notifyHub(pool), store: postgresStore(pool) };
}

const { url } = await serveAgent(agent, {
  port: Number(values.port ?? 0),
  ...(values.admin && { admin: values.admin }),
  ...(values.blobs && { store: blobDirectory(values.blobs) }),
  ...(values.postgres && database(values.postgres)),
});
console.log(url);
