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

export const simulationForms: Forms = new Map([
  ['seed', seed],
  ['agent', callback],
  ['tape', numbers],
  ['prefix', numbers],
  ['maxSteps', steps],
  ['inspect', callback],
  ['interpreter', callback],
]);
