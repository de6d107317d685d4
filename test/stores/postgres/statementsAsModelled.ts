/**
 * Compares the statements of the store with those of the simulated database (`test/simulation/shared/`): generated sequences of
 * statements have the same answers. A lease is over at once, or lasts longer than the test.
 */
import { describe, expect, test } from 'vitest';
import { quotedSchema } from '../../../src/stores/postgres/migrations.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { statementsOf } from '../../../src/stores/postgres/statements.ts';
import { DatabaseModel, type StatementName } from '../../simulation/shared/databaseModel.ts';
import { emptySchema, pglitePool } from '../../support/pglitePool.ts';
import { chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';

const SCHEMA = 'modelled';
const LEASES = [1e9, 1e9, 1e9, -1000];
const statements = statementsOf(quotedSchema(SCHEMA));
type Statement = readonly [StatementName, unknown[]];

/** Numbers of a driver come as texts where they may be large. */
const plain = (rows: readonly Record<string, unknown>[]): string[] =>
  rows
    .map((row) =>
      JSON.stringify(
        Object.entries(row)
          .filter(([column]) => column !== 'place')
          .map(([column, value]) => [column, /^(epoch|count)$/.test(column) ? Number(value) : value])
          .sort(),
      ),
    )
    .sort();

function drawn(next: (n: number) => number, model: DatabaseModel): Statement {
  const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T;
  const id = pick(['a', 'b']);
  const row = model.conversations.get(id);
  const epoch = next(3) > 0 && row ? row.epoch : 1 + next(5);
  const lease = pick(LEASES);
  const seq = next(4) > 0 ? (row?.length ?? 0) : next(4);
  const actId = pick(['x', 'y', 'z']);
  const append = [id, epoch, seq, '{"{}","{}"}', 2, '{}', 1, null, null, pick(['running', 'ended']), lease];
  const held = [`{"a","b"}`, `{"${epoch}","${1 + next(5)}"}`];
  return pick<Statement>([
    ['open', [id, '00', epoch, lease]],
    ['append', append],
    ['append', append],
    ['appendWithAnswers', [...append, `{"${actId}"}`, '{"{}"}']],
    ['renew', [...held, lease]],
    ['held', held],
    ['fence', [id, epoch, 1 + next(9), lease]],
    ['countOf', [id, epoch, seq, seq + 2]],
    ['read', [id, next(3), 4]],
    ['release', [id, epoch]],
    ['find', [id]],
    ['states', ['{"a","b"}']],
    ['putAct', [actId, id, '{}', lease]],
    ['actState', [actId, id]],
    ['withdrawAct', [actId]],
    ['claimActs', held],
    ['answerAct', [actId, '{"value":1}', held[1]]],
  ]);
}

describe('the statements of the store', () => {
  test('answer as those of the simulated database, in every generated order', async () => {
    const pool = pglitePool();
    const store = postgresStore(pool, { schema: SCHEMA });
    await store.list();
    for (let seed = sourceSeed(); seed < sourceSeed() + volume.statementOrders; seed += 1) {
      await emptySchema(SCHEMA);
      const { below: next } = chance(seed);
      const model = new DatabaseModel();
      const steps: string[] = [];
      for (let step = 0; step < 60; step += 1) {
        const [name, values] = drawn(next, model);
        steps.push(`${name} ${JSON.stringify(values)}`);
        const { rows } = await pool.query(statements[name] as string, values);
        const expected = model.execute(name, values, Date.now());
        expect(plain(rows), `seed ${seed}: ${steps.join('\n')}`).toEqual(plain(expected));
      }
    }
    await store.close();
  });
});
