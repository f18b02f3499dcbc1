-- Nothing to change: here a search asks for the word that names the namespace (0011).
select 1;
