/**
 * Records of older versions, brought up to the newest. Rule: one step a version, each a pure function of the record;
 * what comes from a file may be anything, so a step that fails is an answer, not an error.
 */
import { type StoredRecord, UPGRADES, VERSION } from './jsonlVersions.ts';

/** A way leads from this version to the newest. */
export function isReadable(version: unknown): version is number {
  let reached = version;
  while (typeof reached === 'number' && UPGRADES.has(reached)) reached += 1;
  return reached === VERSION;
}

/** Null for a record that a step cannot make anything of. */
export function upgraded(record: StoredRecord, from: number): StoredRecord | null {
  let value = record;
  try {
    for (let version = from; version < VERSION; version += 1) value = UPGRADES.get(version)?.(value) ?? value;
    return value;
  } catch {
    return null;
  }
}
