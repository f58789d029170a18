SELECT c.city, COUNT(*) AS orders, SUM(o.cents) AS cents, MAX(o.cents) AS largest
FROM orders AS o JOIN customers AS c ON o.customer = c.name GROUP BY c.city
