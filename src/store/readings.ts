/** What a person is told of an order whose link the service does not know. */
export function linkMissingDetail(reference: string): string {
  return (
    `The service knows no link of order ${reference} (404): nothing can be asked about it. Look for the link in the ` +
    `service's panel; if its id here is wrong, correct it (settled links add).`
  );
}
