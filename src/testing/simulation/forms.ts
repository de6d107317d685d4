/** What a simulation takes. Rule: it is looked at before a life begins; whatever passes lets that life come to its end. */
import { callback, type Form, type Forms, isList } from '../../form.ts';

const seed: Form = { wanted: 'a whole number', takes: Number.isSafeInteger };
const steps: Form = {
  wanted: 'a whole number of at least 0',
  takes: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};
/** A choice is taken modulo how many there are: it may be larger than any of them. */
const numbers: Form = {
  wanted: 'a list of whole numbers of at least 0',
  takes: (value) => isList(value) && value.every((each) => Number.isInteger(each) && (each as number) >= 0),
};

const isRecord = (value: unknown): value is object => typeof value === 'object' && value !== null && !isList(value);
const examples: Form = {
  wanted: 'lists of arguments by the names of tools',
  takes: (value) => isRecord(value) && Object.values(value).every(isList),
};
const checks: Form = {
  wanted: 'a list of functions',
  takes: (value) => isList(value) && value.every((each) => typeof each === 'function'),
};
export const simulationForms: Forms = new Map([
  ['seed', seed],
  ['agent', callback],
  ['args', examples],
  ['invariants', checks],
  ['tape', numbers],
  ['prefix', numbers],
  ['maxSteps', steps],
  ['inspect', callback],
  ['interpreter', callback],
]);
