<?php
/*
 * The smallest honest shop beside settled: one file, PHP 8.1 or newer with pdo_sqlite, nothing to install.
 *
 *   SHOP_TOKEN=… SHOP_SECRET=whsec_… php -S 127.0.0.1:8800 examples/php/shop.php
 *   SHOP_TOKEN=… SHOP_SECRET=whsec_… php examples/php/shop.php feed
 *
 * The second, run by cron every minute, reads settled's feed: what the first has missed.
 *
 * SHOP_TOKEN is settled's SETTLED_SHOP_TOKEN, SHOP_SECRET its SETTLED_SHOP_SECRET, and its SETTLED_SHOP_URL leads to
 * http://127.0.0.1:8800/settled. More settings: SHOP_SETTLED (settled's private API), SHOP_URL (the shop as customers
 * see it) and SHOP_STORE.
 */
declare(strict_types=1);

const LAMP = ['title' => 'A lamp for the desk', 'amount' => '149.90'];
const REFERENCE = 'lamp-[0-9a-f]{16}';
const BODY_BYTES_MAX = 1_048_576;
const TOLERANCE_SECONDS = 300;

if (PHP_SAPI !== 'cli') {
    handle();
} elseif (($argv[1] ?? '') === 'feed') {
    while (read_feed());
} else {
    fwrite(STDERR, "How to run this is written at its top.\n");
    exit(64);
}

function handle(): void
{
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    try {
        match (true) {
            $_SERVER['REQUEST_METHOD'] === 'POST' && $path === '/buy' => buy(),
            $_SERVER['REQUEST_METHOD'] === 'POST' && $path === '/settled' => take_notice(),
            $path === '/' => show_front(),
            default => show_order((string) $path),
        };
    } catch (Throwable $error) { // nothing was recorded, so no 2xx
        error_log("$path: {$error->getMessage()}");
        answer(500, 'That did not work. Please try again.');
    }
}

/** Opens an order at settled and sends the customer to pay. Pressed twice it is one order: the page has named it. */
function buy(): void
{
    $reference = $_POST['reference'] ?? '';
    if (!is_string($reference) || !preg_match('/^' . REFERENCE . '$/D', $reference)) {
        answer(400, 'Please begin at the first page.');
        return;
    }
    // Known here before anybody can pay it.
    $insert = "INSERT INTO orders (reference, state, version) VALUES (?, 'new', 0) ON CONFLICT DO NOTHING";
    store()->prepare($insert)->execute([$reference]);
    $own_page = setting('SHOP_URL', 'http://127.0.0.1:8800') . "/orders/$reference";
    [$status, $said] = ask('/v1/orders', [...LAMP, 'reference' => $reference, 'callbackUrl' => $own_page]);
    if ($status === 409) { // it was cancelled, or its link has expired: the order's own page says so
        header("Location: $own_page", true, 303);
        return;
    }
    if ($status >= 300) {
        throw new RuntimeException("settled did not open $reference: " . ($said['detail'] ?? $status));
    }
    // 202: the link is still being made. The order's own page offers it again.
    $payable = $said['order']['state'] === 'awaiting_payment' ? $said['order']['link']['url'] ?? null : null;
    header('Location: ' . ($payable ?? $own_page), true, 303);
}

/** What settled has to say. 2xx means that it is on the disk here; anything else, and settled says it again. */
function take_notice(): void
{
    $body = (string) file_get_contents('php://input', length: BODY_BYTES_MAX);
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!is_signed($id, $timestamp, $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '', $body)) {
        answer(401, 'Not signed by settled, or not now.');
        return;
    }
    $order = json_decode($body, true, flags: JSON_THROW_ON_ERROR)['data']['order'];
    say(in_transaction(function (PDO $db) use ($order): array {
        record($db, $order);
        return pack_paid($db, $order['reference']);
    }));
    http_response_code(204);
}

/** Standard Webhooks: HMAC-SHA256 over id, time and raw body. There are two signatures while the secret is changed. */
function is_signed(string $id, string $timestamp, string $signatures, string $body): bool
{
    if ($id === '' || !preg_match('/^[0-9]{1,12}$/D', $timestamp)) {
        return false;
    }
    if (abs(time() - (int) $timestamp) > TOLERANCE_SECONDS) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', setting('SHOP_SECRET')), true);
    if ($key === false || strlen($key) < 24) {
        throw new RuntimeException('SHOP_SECRET must be whsec_ and at least 24 bytes in base64');
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

/** Takes over what a notice says of an order. The same one again, or an older one sent anew, changes nothing. */
function record(PDO $db, array $order): void
{
    $db->prepare(
        'INSERT INTO orders (reference, state, version) VALUES (?, ?, ?) ON CONFLICT (reference)
         DO UPDATE SET state = excluded.state, version = excluded.version WHERE excluded.version > version'
    )->execute([$order['reference'], $order['state'], $order['version']]);
}

/** Marks what is paid and was never packed: this order, or every one. Returns the references. */
function pack_paid(PDO $db, ?string $reference): array
{
    $to_pack = "state = 'paid' AND packed = 0 AND reference = coalesce(?, reference)";
    $find = $db->prepare("SELECT reference FROM orders WHERE $to_pack");
    $find->execute([$reference]);
    $found = $find->fetchAll(PDO::FETCH_COLUMN);
    $db->prepare("UPDATE orders SET packed = 1 WHERE $to_pack")->execute([$reference]);
    return $found;
}

function say(array $packed): void
{
    foreach ($packed as $reference) {
        error_log("$reference is paid: pack it");
    }
}

/**
 * The second way to learn of everything: settled's feed, from where it was last read. Reads one page; returns whether
 * there is more. Its notices and the place after them are one transaction.
 */
function read_feed(): bool
{
    $cursor = store()->query('SELECT cursor FROM feed')->fetchColumn();
    [$status, $page] = ask('/v1/feed' . ($cursor === false ? '' : '?after=' . urlencode($cursor)));
    if ($status === 410) {
        // settled was restored from a backup: read from the beginning. What is known has versions that are known.
        store()->exec('DELETE FROM feed');
        return true;
    }
    if ($status !== 200) {
        throw new RuntimeException($page['detail'] ?? "settled answered $status");
    }
    say(in_transaction(function (PDO $db) use ($page): array {
        foreach ($page['notices'] as $notice) {
            record($db, $notice['data']['order']);
        }
        $db->exec('DELETE FROM feed');
        $db->prepare('INSERT INTO feed VALUES (?)')->execute([$page['cursor']]);
        // Until the end is reached, an order may have been refunded since it was paid.
        return $page['more'] ? [] : pack_paid($db, null);
    }));
    return $page['more'];
}

/** Asks settled's private API; returns the status and what was said. */
function ask(string $path, ?array $body = null): array
{
    $context = stream_context_create(['http' => [
        'method' => $body === null ? 'GET' : 'POST',
        'header' => ['Authorization: Bearer ' . setting('SHOP_TOKEN'), 'Content-Type: application/json'],
        'content' => $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR),
        'ignore_errors' => true, // an error is an answer, too
        'timeout' => 15,
        'follow_location' => 0, // settled leads nowhere
    ]]);
    $said = @file_get_contents(setting('SHOP_SETTLED', 'http://127.0.0.1:8788') . $path, false, $context);
    if ($said === false) {
        throw new RuntimeException('settled does not answer');
    }
    return [(int) explode(' ', $http_response_header[0])[1], json_decode($said, true, flags: JSON_THROW_ON_ERROR)];
}

function store(): PDO
{
    static $db = null;
    if ($db === null) {
        $db = new PDO('sqlite:' . setting('SHOP_STORE', 'shop.db'), options: [PDO::ATTR_TIMEOUT => 10]);
        $db->exec('PRAGMA journal_mode = WAL');
        $db->exec('PRAGMA synchronous = FULL');
        // packed: set once and never again, whatever the order becomes. Packing works from it, and looks whether it is
        // still paid.
        $db->exec('CREATE TABLE IF NOT EXISTS orders
                   (reference TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL,
                    packed INTEGER NOT NULL DEFAULT 0)');
        $db->exec("CREATE INDEX IF NOT EXISTS to_pack ON orders (reference) WHERE state = 'paid' AND packed = 0");
        $db->exec('CREATE TABLE IF NOT EXISTS feed (cursor TEXT NOT NULL)');
    }
    return $db;
}

/** All or nothing, and on the disk when it returns. */
function in_transaction(callable $work): mixed
{
    $db = store();
    $db->exec('BEGIN IMMEDIATE');
    try {
        $result = $work($db);
        $db->exec('COMMIT');
        return $result;
    } catch (Throwable $error) {
        $db->exec('ROLLBACK');
        throw $error;
    }
}

function show_front(): void
{
    answer(200, '<h1>A lamp for the desk</h1>' . pay_button('lamp-' . bin2hex(random_bytes(8))));
}

function show_order(string $path): void
{
    if (!preg_match('#^/orders/(' . REFERENCE . ')$#D', $path, $found)) {
        answer(404, 'There is no such page.');
        return;
    }
    $find = store()->prepare('SELECT state, version FROM orders WHERE reference = ?');
    $find->execute([$found[1]]);
    [$state, $version] = $find->fetch(PDO::FETCH_NUM) ?: [null, 0];
    $heading = (int) $version === 0 ? 'Waiting for your payment' : 'Your order is ' . str_replace('_', ' ', $state);
    $again = '<meta http-equiv="refresh" content="3">';
    match ($state) {
        null => answer(404, 'There is no such page.'),
        'paid' => answer(200, "<h1>Paid. Thank you!</h1><p>{$found[1]}</p>"),
        default => answer(200, "$again<h1>$heading</h1><p>{$found[1]}</p>" . pay_button($found[1])),
    };
}

function pay_button(string $reference): string
{
    $button = "<button name='reference' value='$reference'>Pay R\$149.90</button>";
    return "<form method='post' action='/buy'>$button</form>";
}

function answer(int $status, string $html): void
{
    http_response_code($status);
    header('Content-Type: text/html; charset=utf-8');
    echo $html;
}

function setting(string $name, ?string $fallback = null): string
{
    return getenv($name) ?: $fallback ?? throw new RuntimeException("$name is missing: see the top of this file");
}
