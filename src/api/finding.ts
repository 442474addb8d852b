/** What the doctor found, and what to do about it. */
export type Finding = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

export function finding(name: string, ok: boolean, detail: string): Finding {
  return { name, status: ok ? 'ok' : 'warning', detail };
}
