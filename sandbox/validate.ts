import { z } from 'zod';
import { Refusal, UnknownName } from './model.ts';

/** Types of what a caller may give. Their complaints read as sentences after the name of the field. */

export function wholeNumber(least?: number, most?: number) {
  const range = least === undefined ? '' : most === undefined ? ` from ${least}` : ` from ${least} to ${most}`;
  const error = `must be a whole number${range}`;
  const number = z.number(error).int(error);
  const floored = least === undefined ? number : number.min(least, error);
  return most === undefined ? floored : floored.max(most, error);
}

/** More than nothing, with at most two decimals. */
export function money() {
  const error = 'must be a number greater than 0 with at most two decimals';
  return z
    .number(error)
    .positive(error)
    .refine((value) => Number(value.toFixed(2)) === value, error);
}

export function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z.enum(values, `must be ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`);
}

export function trueOrFalse() {
  return z.boolean('must be true or false');
}

/** @param lengthMax characters */
export function text(lengthMax: number) {
  const error = `must be a text of at most ${lengthMax} characters`;
  return z.string(error).max(lengthMax, error);
}

/** The known name that was given. Throws a refusal that lists the known ones. */
export function oneNamed<Name extends string>(
  what: string,
  given: unknown,
  known: readonly Name[],
  field: string | null = null,
): Name {
  const name = known.find((name) => name === given);
  if (name !== undefined) return name;
  throw new Refusal(400, 'validation_error', `${new UnknownName(what, given, known).message}.`, field);
}

/** An object with these fields and no others. `hint` is the complaint about another field. */
export function fields<Shape extends z.core.$ZodShape>(shape: Shape, hint?: string) {
  const known = Object.keys(shape).join(', ');
  return z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? (hint ?? `is not known; known: ${known || 'nothing'}`) : 'must be an object',
  });
}

/** Throws a refusal that names the first wrong field. */
export function readShape<S extends z.ZodType>(shape: S, given: unknown): z.output<S> {
  const result = shape.safeParse(given);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const [extra] = issue?.code === 'unrecognized_keys' ? issue.keys : [];
  const field = [...(issue?.path ?? []), ...(extra === undefined ? [] : [extra])].join('.') || 'body';
  throw new Refusal(400, 'validation_error', `${field} ${issue?.message}.`, field);
}
