/** What the document says of all routes. Paragraphs, with names in backticks. */
export const INTRODUCTION = [
  'settled opens payment links for the orders of a shop, receives what the payment-link service says of them, and marks ' +
    'each order paid: once, durably, and for the right money. This is the API of its private listener, for the shop and ' +
    'for the people who operate it.',

  '**Tokens.** Send `Authorization: Bearer TOKEN`. The operator may do everything; the shop may open, check and cancel ' +
    'orders, register links and read. The examples need two names: `API=http://127.0.0.1:8788` and ' +
    '`AUTH="Authorization: Bearer $(cat data/settled.db.operator-token)"`.',

  '**Bodies** are JSON objects in UTF-8, of at most 64 KiB, sent as `application/json`. A field that a route does not ' +
    'know is refused by its name, and one that stands twice; so is a query parameter. Lengths count UTF-16 units.',

  '**References** in a path are percent-encoded: order `a/b` is `/v1/orders/a%2Fb`.',

  "**Amounts** come out as decimal strings with the currency's digits. They go in as such strings or as numbers, and are " +
    'taken as they are written. **Times** are ISO 8601; those that come out are in UTC.',

  '**Lists** show the newest first. `nextCursor` is null on the last page; else give it back as `cursor` for the next. Rows ' +
    'that arrive meanwhile neither repeat nor hide others.',

  '**Answers** may gain fields and lists may gain names in later versions: leave out what you do not know.',

  '**Errors** are `application/problem+json` (RFC 9457): branch on `title`, which is the code; `detail` is a sentence for a ' +
    'person. Any address may also answer 404 `not_found` where there is nothing at it, and 405 `method_not_allowed`, with ' +
    '`Allow`. A GET route answers HEAD as well.',
].join('\n\n');

export const NOTICE_TEXT = [
  'Signed as Standard Webhooks has it, with `SETTLED_SHOP_SECRET`: verify the bytes as they came, then read them. Every ' +
    'attempt is signed anew.',

  'Notices of one order come in its order, and no order waits for another. What is not answered 2xx within 10 s is sent ' +
    'again after 5 s, 30 s, 2 min, 10 min, 30 min and then hourly, for 7 days. The feed has the same notices under the same ' +
    'ids.',
].join('\n\n');
