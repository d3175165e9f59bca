(** Terms and statements of real numbers: functions with their domains and derivatives, fingerprints, and the
    guarantee of each function that appends statements.

    A [term] is an expression as the user wrote it; a statement is one operation on values that have numbers.
    Everything here computes on syntax; the real numbers appear in the theorems only. *)

Require Import Reals Lra Lia List Bool ZArith QArith Qreals RMicromega PArith FMapPositive.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions.
Import ListNotations.
Open Scope R_scope.

Module M := PositiveMap.

(** Conditions of which the second is evaluated only if the first does not decide; [andb] and [orb] evaluate both. *)
Notation "a &&& b" := (if a then b else false) (at level 40, left associativity).
Notation "a ||| b" := (if a then true else b) (at level 50, left associativity).

(** ** Functions, their domains, and their derivatives *)

Inductive fn :=
  | Inv | Exp | Log | Sqrt | Sin | Cos | Tan | Sec | Csc | Cot | Asin | Acos | Atan | Acot
  | Sinh | Cosh | Tanh | Sech | Csch | Coth | Asinh | Acosh | Atanh
  | Sigmoid | Softplus | Logcosh | Silu | Log1p | Expm1 | Log2 | Log10 | Exp2
  | Abs | Sign | Heaviside | Erf | Erfc | Erfi | Fresnels | Fresnelc.

Inductive fn2 := Power | Logaddexp | Hypot | Xlogy | Maximum | Minimum | Less.

Definition value1 (f : fn) : R -> R :=
  match f with
  | Inv => Rinv | Exp => exp | Log => ln | Sqrt => sqrt | Sin => sin | Cos => cos | Tan => tan
  | Sec => sec | Csc => csc | Cot => cot | Asin => asin | Acos => acos | Atan => atan | Acot => acot
  | Sinh => sinh | Cosh => cosh | Tanh => tanh | Sech => sech | Csch => csch | Coth => coth
  | Asinh => arcsinh | Acosh => acosh | Atanh => atanh
  | Sigmoid => sigmoid | Softplus => softplus | Logcosh => logcosh | Silu => silu
  | Log1p => log1p | Expm1 => expm1 | Log2 => log2 | Log10 => log10 | Exp2 => exp2
  | Abs => Rabs | Sign => sign | Heaviside => heaviside | Erf => erf | Erfc => erfc | Erfi => erfi
  | Fresnels => fresnels | Fresnelc => fresnelc
  end.

Definition value2 (g : fn2) : R -> R -> R :=
  match g with
  | Power => Rpower | Logaddexp => logaddexp | Hypot => hypot | Xlogy => xlogy
  | Maximum => Rmax | Minimum => Rmin | Less => less
  end.

Definition domain1 (f : fn) (x : R) : Prop :=
  match f with
  | Inv | Acot | Csch | Coth | Abs | Sign | Heaviside => x <> 0
  | Log | Sqrt | Log2 | Log10 => 0 < x
  | Tan | Sec => cos x <> 0
  | Csc | Cot => sin x <> 0
  | Asin | Acos | Atanh => -1 < x < 1
  | Acosh => 1 < x
  | Log1p => -1 < x
  | _ => True
  end.

Inductive term :=
  | Var (k : positive)
  | Int (z : Z)
  | Pi
  | Add (a b : term)
  | Sub (a b : term)
  | Mul (a b : term)
  | Div (a b : term)
  | Opp (a : term)
  | Pow (a : term) (n : nat)
  | App (f : fn) (a : term)
  | App2 (g : fn2) (a b : term).

Fixpoint eval (rho : positive -> R) (t : term) : R :=
  match t with
  | Var k => rho k
  | Int z => IZR z
  | Pi => PI
  | Add a b => eval rho a + eval rho b
  | Sub a b => eval rho a - eval rho b
  | Mul a b => eval rho a * eval rho b
  | Div a b => eval rho a / eval rho b
  | Opp a => - eval rho a
  | Pow a n => eval rho a ^ n
  | App f a => value1 f (eval rho a)
  | App2 g a b => value2 g (eval rho a) (eval rho b)
  end.

(** The conditions under which a function of two arguments has a derivative. *)
Definition needs2 (g : fn2) (a b : term) : list (fn * term) :=
  match g with
  | Power => [(Log, a)]
  | Hypot => [(Log, Add (Pow a 2) (Pow b 2))]
  | Xlogy => [(Log, b)]
  | Logaddexp => []
  | Maximum | Minimum => [(Inv, Sub a b)]
  | Less => [(Inv, Sub b a)]
  end.

Definition holds (rho : positive -> R) (c : fn * term) : Prop := domain1 (fst c) (eval rho (snd c)).

Definition args2 (x y z : R) (k : positive) : R :=
  match k with 1%positive => x | 2%positive => y | _ => z end.

Definition domain2 (g : fn2) (x y : R) : Prop :=
  List.Forall (holds (args2 x y 0)) (needs2 g (Var 1) (Var 2)).

(** The derivative of a function: of the argument, [Var 1], and the value, [Var 3]. *)
Definition slope1 (f : fn) : term :=
  let x := Var 1 in
  let y := Var 3 in
  match f with
  | Inv => Opp (Pow y 2)
  | Exp => y
  | Log => App Inv x
  | Sqrt => App Inv (Mul (Int 2) y)
  | Sin => App Cos x
  | Cos => Opp (App Sin x)
  | Tan => Add (Int 1) (Pow y 2)
  | Sec => Mul (App Tan x) y
  | Csc => Mul (Opp (App Cot x)) y
  | Cot => Sub (Opp (Pow y 2)) (Int 1)
  | Asin => App Inv (App Sqrt (Sub (Int 1) (Pow x 2)))
  | Acos => Opp (App Inv (App Sqrt (Sub (Int 1) (Pow x 2))))
  | Atan => App Inv (Add (Pow x 2) (Int 1))
  | Acot => Opp (App Inv (Add (Pow x 2) (Int 1)))
  | Sinh => App Cosh x
  | Cosh => App Sinh x
  | Tanh => Sub (Int 1) (Pow y 2)
  | Sech => Mul (Opp (App Tanh x)) y
  | Csch => Mul (Opp (App Coth x)) y
  | Coth => Opp (Pow (App Csch x) 2)
  | Asinh => App Inv (App Sqrt (Add (Pow x 2) (Int 1)))
  | Acosh => App Inv (Mul (App Sqrt (Sub x (Int 1))) (App Sqrt (Add x (Int 1))))
  | Atanh => App Inv (Sub (Int 1) (Pow x 2))
  | Sigmoid => Mul y (Sub (Int 1) y)
  | Softplus => App Sigmoid x
  | Logcosh => App Tanh x
  | Silu => Add (App Sigmoid x) (Mul y (App Sigmoid (Opp x)))
  | Log1p => App Inv (Add x (Int 1))
  | Expm1 => App Exp x
  | Log2 => App Inv (Mul x (App Log (Int 2)))
  | Log10 => App Inv (Mul x (App Log (Int 10)))
  | Exp2 => Mul (App Log (Int 2)) y
  | Abs => App Sign x
  | Sign | Heaviside => Int 0
  | Erf => Mul (Div (Int 2) (App Sqrt Pi)) (App Exp (Opp (Pow x 2)))
  | Erfc => Mul (Opp (Div (Int 2) (App Sqrt Pi))) (App Exp (Opp (Pow x 2)))
  | Erfi => Mul (Div (Int 2) (App Sqrt Pi)) (App Exp (Pow x 2))
  | Fresnels => App Sin (Div (Mul Pi (Pow x 2)) (Int 2))
  | Fresnelc => App Cos (Div (Mul Pi (Pow x 2)) (Int 2))
  end.

Definition slope2 (g : fn2) : term * term :=
  let x := Var 1 in
  let y := Var 2 in
  let z := Var 3 in
  match g with
  | Power => (Mul y (Mul z (App Inv x)), Mul z (App Log x))
  | Logaddexp => (App Sigmoid (Sub x y), App Sigmoid (Sub y x))
  | Hypot => (Mul x (App Inv z), Mul y (App Inv z))
  | Xlogy => (App Log y, Mul x (App Inv y))
  | Maximum => (App2 Less y x, App2 Less x y)
  | Minimum => (App2 Less x y, App2 Less y x)
  | Less => (Int 0, Int 0)
  end.

Theorem slope1_ok (f : fn) (x y : R) :
  domain1 f x -> is_derive (value1 f) x (eval (args2 x y (value1 f x)) (slope1 f)).
Proof.
  intros H; destruct f; cbv [eval args2 slope1 value1 domain1] in *;
    auto using d_exp, d_log, d_sqrt, d_sin, d_cos, d_tan, d_sec, d_csc, d_cot, d_asin, d_acos, d_atan,
      d_acot, d_sinh, d_cosh, d_tanh, d_sech, d_csch, d_coth, d_asinh, d_acosh, d_atanh, d_sigmoid,
      d_softplus, d_logcosh, d_silu, d_log1p, d_expm1, d_log2, d_log10, d_exp2, d_abs, d_sign, d_heaviside, d_erf,
      d_erfc, d_erfi, d_fresnels, d_fresnelc, d_inv.
Qed.

Theorem slope2_ok (g : fn2) (u v : R -> R) (t du dv : R) :
  domain2 g (u t) (v t) -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => value2 g (u s) (v s)) t
    (eval (args2 (u t) (v t) (value2 g (u t) (v t))) (fst (slope2 g)) * du
     + eval (args2 (u t) (v t) (value2 g (u t) (v t))) (snd (slope2 g)) * dv).
Proof.
  intros H U V; destruct g; cbv [domain2 needs2] in H;
    try (inversion H as [|c r H1 H2]); cbv [eval args2 slope2 fst snd value2 domain1 holds] in *;
    auto using d_power, d_logaddexp, d_hypot, d_xlogy, d_max, d_min, d_less.
Qed.

(** ** Statements *)

Inductive op :=
  | OConst (q : Q)
  | OPi
  | OAdd (a b : positive)
  | OMul (a b : positive)
  | OOpp (a : positive)
  | OPow (a : positive) (n : nat)
  | OApp (f : fn) (a : positive)
  | OApp2 (g : fn2) (a b : positive).

Definition valuation := positive -> R.

Definition evalop (v : valuation) (o : op) : R :=
  match o with
  | OConst q => Q2R q
  | OPi => PI
  | OAdd a b => v a + v b
  | OMul a b => v a * v b
  | OOpp a => - v a
  | OPow a n => v a ^ n
  | OApp f a => value1 f (v a)
  | OApp2 g a b => value2 g (v a) (v b)
  end.

(** Statements, the last one first. *)
Definition code := list (positive * op).

Definition Sat (v : valuation) : code -> Prop := List.Forall (fun s => v (fst s) = evalop v (snd s)).

Definition domain_op (v : valuation) (o : op) : Prop :=
  match o with
  | OApp f a => domain1 f (v a)
  | OApp2 g a b => domain2 g (v a) (v b)
  | _ => True
  end.

Definition Dom (v : valuation) : code -> Prop := List.Forall (fun s => domain_op v (snd s)).

(** ** Fingerprints

    Values modulo a prime at one point, with arbitrary values for functions. Nothing rests on them: they say
    which values are worth comparing, and which of x and −x is called negative. *)

Definition prime : Z := 2305843009213693951.  (* 2^61 - 1 *)

Definition fn_number (f : fn) : Z :=
  match f with
  | Inv => 1 | Exp => 2 | Log => 3 | Sqrt => 4 | Sin => 5 | Cos => 6 | Tan => 7 | Sec => 8 | Csc => 9
  | Cot => 10 | Asin => 11 | Acos => 12 | Atan => 13 | Acot => 14 | Sinh => 15 | Cosh => 16 | Tanh => 17
  | Sech => 18 | Csch => 19 | Coth => 20 | Asinh => 21 | Acosh => 22 | Atanh => 23 | Sigmoid => 24
  | Softplus => 25 | Logcosh => 26 | Silu => 27 | Log1p => 28 | Expm1 => 29 | Log2 => 30 | Log10 => 31
  | Exp2 => 32 | Abs => 33 | Sign => 34 | Erf => 35 | Erfc => 36 | Erfi => 37 | Fresnels => 38
  | Fresnelc => 39 | Heaviside => 40
  end%Z.

Definition fn2_number (g : fn2) : Z :=
  match g with Power => 51 | Logaddexp => 52 | Hypot => 53 | Xlogy => 54
  | Maximum => 55 | Minimum => 56 | Less => 57 end%Z.

Definition fold (z : Z) : Z :=
  let y := (Z.land z prime + Z.shiftr z 61)%Z in if (prime <=? y)%Z then (y - prime)%Z else y.

Definition madd (a b : Z) : Z := let c := (a + b)%Z in if (prime <=? c)%Z then (c - prime)%Z else c.
Definition mneg (a : Z) : Z := match a with Z0 => Z0 | _ => (prime - a)%Z end.
Definition mmul (a b : Z) : Z := fold (a * b).

Definition mix (a b : Z) : Z := let x := madd a (fold (b * 982451653)) in mmul (mmul x x) (madd x 15485863%Z).

Fixpoint mpow (a : Z) (n : positive) : Z :=
  match n with
  | xH => a
  | xO m => let b := mpow a m in mmul b b
  | xI m => let b := mpow a m in mmul (mmul b b) a
  end.

(** The inverse by Euclid's algorithm; 0 for 0. *)
Fixpoint euclid (fuel : nat) (a b x y : Z) : Z :=
  match fuel, b with
  | O, _ | _, Z0 => x
  | S fuel, _ => let (q, r) := Z.div_eucl a b in euclid fuel b r y (x - q * y)%Z
  end.

Definition minv (a : Z) : Z := (euclid 100 prime a 0 1 mod prime)%Z.

Definition print_of (prints : M.t Z) (k : positive) : Z :=
  match M.find k prints with Some z => z | None => mix (Zpos k * 2654435761)%Z 77 end.

Definition negative (a : Z) : bool := (prime <? 2 * a)%Z.

(** exp(a) is a square and 1/exp(−a), so that tanh and sech of a/2 are rational in its root. *)
Definition root_of_exp (a : Z) : Z := if negative a then minv (mix (mneg a) 2) else mix a 2.

Definition fingerprint (prints : M.t Z) (o : op) : Z :=
  let p := print_of prints in
  match o with
  | OConst q =>
    let n := (Qnum q mod prime)%Z in match Qden q with xH => n | d => mmul n (minv (Zpos d mod prime)%Z) end
  | OPi => 314159265358979
  | OAdd a b => madd (p a) (p b)
  | OMul a b => mmul (p a) (p b)
  | OOpp a => mneg (p a)
  | OPow a n => match n with O => 1 | _ => mpow (p a) (Pos.of_nat n) end
  | OApp Inv a => minv (p a)
  | OApp Exp a => let u := root_of_exp (p a) in mmul u u
  | OApp Tanh a =>
    let u := root_of_exp (mneg (madd (p a) (p a))) in
    let e := mmul u u in mmul (madd 1 (mneg e)) (minv (madd 1 e))
  | OApp Sech a =>
    let u := root_of_exp (mneg (madd (p a) (p a))) in mmul (madd u u) (minv (madd 1 (mmul u u)))
  | OApp f a => mix (p a) (fn_number f)
  | OApp2 g a b => mix (mix (p a) (fn2_number g)) (p b)
  end%Z.

(** [tanhs] maps some values to the number of the statement of their tanh. [deep]: functions are written by
    exponentials and logarithms of as few arguments as possible. *)
Record state := State {
  next : positive; written : code; table : M.t op; prints : M.t Z; tanhs : M.t positive; deep : bool
}.

Definition table_ok (s : state) : Prop :=
  (forall k o, M.find k (table s) = Some o -> In (k, o) (written s)) /\
  (forall b h, M.find b (tanhs s) = Some h -> forall v, Sat v (written s) -> v h = tanh (v b)).

Definition emit (o : op) (s : state) : positive * state :=
  let k := next s in
  (k, State (Pos.succ k) ((k, o) :: written s) (M.add k o (table s))
        (M.add k (fingerprint (prints s) o) (prints s)) (tanhs s) (deep s)).

Arguments emit : simpl never.

(** The guarantee of each function that generates code: it only appends statements; a valuation that satisfies the statements
    satisfies the claim; and the conditions of the new statements hold where [need] does. *)
Record gen (s s' : state) (need claim : valuation -> Prop) : Prop := Gen {
  gen_table : table_ok s -> table_ok s';
  gen_ext : exists e, written s' = e ++ written s;
  gen_claim : table_ok s -> forall v, Sat v (written s') -> claim v;
  gen_dom : table_ok s -> forall v, Sat v (written s') -> Dom v (written s) -> need v -> Dom v (written s')
}.

Lemma gen_here s (need claim : valuation -> Prop) :
  (table_ok s -> forall v, Sat v (written s) -> claim v) -> gen s s need claim.
Proof. intros H; split; auto. now exists []. Qed.

Lemma gen_then s s1 s2 need1 need2 claim1 claim2 :
  gen s s1 need1 claim1 -> gen s1 s2 need2 claim2 ->
  gen s s2 (fun v => need1 v /\ (claim1 v -> need2 v)) (fun v => claim1 v /\ claim2 v).
Proof.
  intros [T1 [e1 E1] C1 D1] [T2 [e2 E2] C2 D2].
  assert (S1 : forall v, Sat v (written s2) -> Sat v (written s1)).
  { intros v H. unfold Sat in *. rewrite E2 in H. apply List.Forall_app in H. apply H. }
  split; auto.
  - exists (e2 ++ e1). now rewrite E2, E1, app_assoc.
  - intros T v H D [N1 N2]. apply D2; auto.
Qed.

Lemma gen_weaken s s' (need need' claim claim' : valuation -> Prop) :
  gen s s' need claim ->
  (forall v, need' v -> need v) -> (table_ok s -> forall v, Sat v (written s') -> claim v -> claim' v) ->
  gen s s' need' claim'.
Proof. intros [T E C D] N W; split; auto. Qed.

Lemma gen_emit o s k s' :
  emit o s = (k, s') -> gen s s' (fun v => domain_op v o) (fun v => v k = evalop v o).
Proof.
  unfold emit. intros E; inversion E; subst; clear E. split; simpl.
  - intros [T H]. split; simpl.
    + intros j p. destruct (Pos.eq_dec j (next s)) as [-> | N].
      * rewrite M.gss. intros F; inversion F. now left.
      * rewrite M.gso by assumption. intros F. right. now apply T.
    + intros b h F v S. apply H; [exact F|]. now inversion S.
  - now exists [(next s, o)].
  - intros _ v H. now inversion H.
  - intros _ v H D N. now constructor.
Qed.

Lemma in_table s k o v : table_ok s -> Sat v (written s) -> M.find k (table s) = Some o -> v k = evalop v o.
Proof.
  intros [T _] H F. apply T in F. unfold Sat in H. rewrite List.Forall_forall in H. apply (H (k, o) F).
Qed.

(** ** Signs *)

Definition sound (t : M.t op) (v : valuation) : Prop := forall k o, M.find k t = Some o -> v k = evalop v o.

(** Some values, by the number of their statements, are not 0, and positive where the flag is true. *)
Definition fact_right (v : valuation) (f : positive * bool) : Prop := v (fst f) <> 0 /\ (snd f = true -> 0 < v (fst f)).

Definition facts_right (v : valuation) (facts : M.t bool) : Prop :=
  forall k b, M.find k facts = Some b -> fact_right v (k, b).

(** Whether a value is positive, or not negative if not [strict]. *)
Fixpoint above (t : M.t op) (facts : M.t bool) (fuel : nat) (strict : bool) (k : positive) : bool :=
  match fuel, M.find k facts with
  | O, _ => false
  | _, Some true => true
  | S fuel, _ =>
    let above := above t facts fuel in
    match M.find k t with
    | Some (OConst q) => if strict then (0 <? Qnum q)%Z else (0 <=? Qnum q)%Z
    | Some OPi | Some (OApp Exp _) | Some (OApp Cosh _) | Some (OApp2 Power _ _) => true
    | Some (OAdd a b) =>
      if strict then above true a &&& above false b ||| (above false a &&& above true b)
      else above false a &&& above false b
    | Some (OMul a b) => above strict a &&& above strict b ||| (negb strict && Pos.eqb a b)
    | Some (OPow a n) => above strict a ||| (negb strict && Nat.even n)
    | Some (OApp Inv a) => above strict a
    | Some (OApp Sqrt a) => if strict then above true a else true
    | _ => false
    end
  end.

Definition sign_at (strict : bool) (x : R) : Prop := if strict then 0 < x else 0 <= x.

Lemma above_ok t facts v : sound t v -> facts_right v facts ->
  forall fuel strict k, above t facts fuel strict k = true -> sign_at strict (v k).
Proof.
  intros T H. assert (W : forall strict x, 0 < x -> sign_at strict x) by (intros []; unfold sign_at; intros; lra).
  induction fuel as [|fuel IH]; intros strict k; [discriminate|].
  assert (IH1 := IH true). assert (IH0 := IH false). unfold sign_at in IH1, IH0. cbn [above].
  destruct (M.find k facts) as [[|]|] eqn:F; [intros _; apply W, (H k true F); reflexivity| |];
    clear F; (destruct (M.find k t) as [o|] eqn:F; [|discriminate]; apply T in F;
    destruct o as [q| |a b|a b|a|a n|f a|g a b]; try discriminate; rewrite F; cbn [evalop]; intros E;
    [ assert (0 < / IZR (Z.pos (Qden q))) by (apply Rinv_0_lt_compat, IZR_lt; reflexivity);
      destruct strict; unfold sign_at, Q2R;
      [ apply Z.ltb_lt, IZR_lt in E; now apply Rmult_lt_0_compat
      | apply Z.leb_le, IZR_le in E; apply Rmult_le_pos; lra ]
    | apply W, PI_RGT_0
    | destruct strict; unfold sign_at;
      [ apply orb_prop in E; destruct E as [E|E]; apply andb_prop in E; destruct E as [A B];
        [ apply IH1 in A; apply IH0 in B; lra | apply IH0 in A; apply IH1 in B; lra ]
      | apply andb_prop in E; destruct E as [A B]; apply IH0 in A; apply IH0 in B; lra ]
    | apply orb_prop in E; destruct E as [E|E]; apply andb_prop in E; destruct E as [A B];
      [ apply IH in A; apply IH in B; destruct strict; unfold sign_at in *;
        [ now apply Rmult_lt_0_compat | now apply Rmult_le_pos ]
      | destruct strict; [discriminate|]; apply Pos.eqb_eq in B; subst; apply Rle_0_sqr ]
    | apply orb_prop in E; destruct E as [E|E];
      [ apply IH in E; destruct strict; unfold sign_at in *; [now apply pow_lt | now apply pow_le]
      | destruct strict; [discriminate|]; apply Nat.even_spec in E; destruct E as [m ->]; unfold sign_at;
        rewrite pow_mult; apply pow_le, pow2_ge_0 ]
    | destruct f; try discriminate; cbn [value1];
      [ apply IH in E; destruct strict; unfold sign_at in *;
        [ now apply Rinv_0_lt_compat
        | destruct E as [E| <-]; [now apply Rlt_le, Rinv_0_lt_compat | rewrite Rinv_0; apply Rle_refl] ]
      | apply W, exp_pos
      | destruct strict; unfold sign_at; [apply sqrt_lt_R0; now apply IH1 | apply sqrt_pos]
      | apply W, cosh_pos ]
    | destruct g; try discriminate; apply W, exp_pos ]).
Qed.

Definition is_above (t : M.t op) (k : positive) : bool := above t (M.empty bool) 50 true k.

Lemma is_above_ok s v k : table_ok s -> Sat v (written s) -> is_above (table s) k = true -> 0 < v k.
Proof.
  intros T S. apply (above_ok (table s) (M.empty bool) v); [intros j o; now apply in_table|].
  intros j b F. now rewrite M.gempty in F.
Qed.

(** ** Inverses *)

Definition is_one (t : M.t op) (k : positive) : bool :=
  match M.find k t with Some (OConst q) => Qeq_bool q 1 | _ => false end.

(** The exponential e if k is 1/e; otherwise none. *)
Definition inverse_exp (t : M.t op) (k : positive) : option positive :=
  match M.find k t with
  | Some (OApp Inv e) => match M.find e t with Some (OApp Exp _) => Some e | _ => None end
  | _ => None
  end.

Definition one_and_inverse_exp (t : M.t op) (b c : positive) : option positive :=
  if is_one t b then inverse_exp t c else if is_one t c then inverse_exp t b else None.

(** In a [deep] state, of a value of unknown sign that counts as [negative] the opposite is inverted. *)
Definition inverse (a : positive) (s : state) : positive * state :=
  if deep s &&& negative (print_of (prints s) a) &&& negb (is_above (table s) a) then
    let (m, s) := emit (OOpp a) s in
    let (i, s) := emit (OApp Inv m) s in emit (OOpp i) s
  else emit (OApp Inv a) s.

(** The inverse of a product is the product of the inverses, recursively, down to sums and functions;
    1/(1 + 1/e) is e/(1 + e) for an exponential e. *)
Fixpoint invert (fuel : nat) (a : positive) (s : state) : positive * state :=
  match fuel with
  | O => inverse a s
  | S fuel =>
    match M.find a (table s) with
    | Some (OConst q) => emit (OConst (/ q)) s
    | Some (OMul b c) =>
      let (i, s) := invert fuel b s in let (j, s) := invert fuel c s in emit (OMul i j) s
    | Some (OPow b (S n)) => let (i, s) := invert fuel b s in emit (OPow i (S n)) s
    | Some (OOpp b) => let (i, s) := invert fuel b s in emit (OOpp i) s
    | Some (OApp Inv b) => (b, s)
    | Some (OAdd b c) =>
      match one_and_inverse_exp (table s) b c with
      | None => inverse a s
      | Some e =>
        let (i, s) := emit (OConst 1) s in
        let (d, s) := emit (OAdd i e) s in
        let (w, s) := emit (OApp Inv d) s in emit (OMul e w) s
      end
    | _ => inverse a s
    end
  end.

Lemma one_and_inverse_exp_ok s b c e v : table_ok s -> Sat v (written s) ->
  one_and_inverse_exp (table s) b c = Some e -> 0 < v e /\ v b + v c = 1 + / v e.
Proof.
  intros T S.
  assert (O : forall k, is_one (table s) k = true -> v k = 1).
  { unfold is_one. intros k H. destruct (M.find k (table s)) as [o|] eqn:F; [|discriminate].
    destruct o; try discriminate. rewrite (in_table s k _ v T S F). simpl. apply Qeq_true in H. rewrite H.
    apply RMicromega.Q2R_1. }
  assert (X : forall k, inverse_exp (table s) k = Some e -> 0 < v e /\ v k = / v e).
  { unfold inverse_exp. intros k H. destruct (M.find k (table s)) as [o|] eqn:F; [|discriminate].
    destruct o as [| | | | | |f x|]; try discriminate. destruct f; try discriminate.
    destruct (M.find x (table s)) as [o|] eqn:G; [|discriminate].
    destruct o as [| | | | | |f y|]; try discriminate. destruct f; try discriminate. inversion H; subst.
    rewrite (in_table s k _ v T S F). split; [|reflexivity]. rewrite (in_table s e _ v T S G). apply exp_pos. }
  unfold one_and_inverse_exp. destruct (is_one (table s) b) eqn:B.
  - intros H. destruct (X c H) as [P Q]. split; [exact P|]. now rewrite (O b B), Q.
  - destruct (is_one (table s) c) eqn:C; [|discriminate]. intros H. destruct (X b H) as [P Q].
    split; [exact P|]. rewrite (O c C), Q. ring.
Qed.

Lemma gen_inv_plain a s k s' :
  inverse a s = (k, s') -> gen s s' (fun v => v a <> 0) (fun v => v k = / v a).
Proof.
  unfold inverse. destruct (deep s &&& _ &&& _); [|intros E; exact (gen_emit _ _ _ _ E)].
  destruct (emit (OOpp a) s) as [m s1] eqn:E1. destruct (emit (OApp Inv m) s1) as [i s2] eqn:E2. intros E3.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
    (gen_emit _ _ _ _ E3))).
  apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op value1 domain1].
  - intros v N. split; [exact I|]. intros C1. split; [|intros; exact I]. rewrite C1. now apply Ropp_neq_0_compat.
  - intros _ v _ (C1 & C2 & C3). rewrite C3, C2, C1, Rinv_opp. apply Ropp_involutive.
Qed.

Lemma Sat_ext v s s' : (exists e, written s' = e ++ written s) -> Sat v (written s') -> Sat v (written s).
Proof. intros [e E] H. unfold Sat in *. rewrite E in H. apply List.Forall_app in H. apply H. Qed.

Lemma gen_invert fuel : forall a s k s', invert fuel a s = (k, s') ->
  gen s s' (fun v => v a <> 0) (fun v => v k = / v a).
Proof.
  induction fuel as [|fuel IH]; intros a s k s'; cbn [invert]; [apply gen_inv_plain|].
  destruct (M.find a (table s)) as [o|] eqn:F; [|apply gen_inv_plain].
  assert (L : forall v, table_ok s -> Sat v (written s) -> v a = evalop v o) by (intros; eapply in_table; eauto).
  destruct o as [q| |b c|b c|b|b [|n]|f b|g b c]; try apply gen_inv_plain.
  - intros E. apply gen_emit in E. destruct E as [T X C D]. split; auto.
    + intros T0 v S. rewrite (C T0 v S), (L v T0 (Sat_ext v _ _ X S)). simpl. rewrite Q2R_inv_ext.
      destruct (Qeq_bool q 0) eqn:Z; [|reflexivity]. apply Qeq_true in Z. now rewrite Z, Q2R_0, Rinv_0.
    + intros T0 v S D0 N. now apply D.
  - destruct (one_and_inverse_exp (table s) b c) as [x|] eqn:Q; [|apply gen_inv_plain].
    destruct (emit (OConst 1) s) as [i s1] eqn:E1. destruct (emit (OAdd i x) s1) as [d s2] eqn:E2.
    destruct (emit (OApp Inv d) s2) as [w s3] eqn:E3. intros E4.
    destruct (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
      (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E3) (gen_emit _ _ _ _ E4)))) as [T X C D].
    assert (P : forall v, table_ok s -> Sat v (written s') -> 0 < v x /\ v b + v c = 1 + / v x).
    { intros v T0 S. apply (one_and_inverse_exp_ok s b c x v T0 (Sat_ext v _ _ X S) Q). }
    split; auto.
    + intros T0 v S. destruct (C T0 v S) as (C1 & C2 & C3 & C4). destruct (P v T0 S) as [P1 P2].
      rewrite C4. simpl. rewrite C3. simpl. rewrite C2. simpl. rewrite C1. simpl.
      rewrite (L v T0 (Sat_ext v _ _ X S)). simpl. rewrite P2, RMicromega.Q2R_1. field. split; lra.
    + intros T0 v S D0 N. destruct (P v T0 S) as [P1 P2]. apply D; auto.
      cbn [domain_op evalop domain1]. split; [exact I|]. intros C1. split; [exact I|]. intros C2.
      split; [|intros; exact I]. rewrite C2, C1, RMicromega.Q2R_1. lra.
  - destruct (invert fuel b s) as [i s1] eqn:E1. destruct (invert fuel c s1) as [j s2] eqn:E2. intros E3.
    destruct (gen_then _ _ _ _ _ _ _ (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E1) (IH _ _ _ _ E2))
      (gen_emit _ _ _ _ E3)) as [T X C D]. split; auto.
    + intros T0 v S. destruct (C T0 v S) as [[C1 C2] C3]. rewrite C3. simpl. rewrite C1, C2.
      rewrite (L v T0 (Sat_ext v _ _ X S)). simpl. symmetry. apply Rinv_mult.
    + intros T0 v S D0 N. rewrite (L v T0 (Sat_ext v _ _ X S)) in N. simpl in N.
      apply D; auto.
      assert (v b <> 0) by (intros Z; apply N; rewrite Z; ring).
      assert (v c <> 0) by (intros Z; apply N; rewrite Z; ring). simpl. tauto.
  - destruct (invert fuel b s) as [i s1] eqn:E1. intros E3.
    destruct (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E1) (gen_emit _ _ _ _ E3)) as [T X C D]. split; auto.
    + intros T0 v S. destruct (C T0 v S) as [C1 C3]. rewrite C3. simpl. rewrite C1.
      rewrite (L v T0 (Sat_ext v _ _ X S)). simpl. symmetry. apply Rinv_opp.
    + intros T0 v S D0 N. rewrite (L v T0 (Sat_ext v _ _ X S)) in N. simpl in N.
      apply D; auto. assert (v b <> 0) by (intros Z; apply N; rewrite Z; ring). simpl. tauto.
  - destruct (invert fuel b s) as [i s1] eqn:E1. intros E3.
    destruct (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E1) (gen_emit _ _ _ _ E3)) as [T X C D]. split; auto.
    + intros T0 v S. destruct (C T0 v S) as [C1 C3]. rewrite C3. cbn [evalop]. rewrite C1.
      rewrite (L v T0 (Sat_ext v _ _ X S)). cbn [evalop]. apply pow_inv.
    + intros T0 v S D0 N. rewrite (L v T0 (Sat_ext v _ _ X S)) in N. cbn [evalop] in N.
      apply D; auto. assert (v b <> 0) by (intros Z; apply N; rewrite Z; simpl; ring). simpl. tauto.
  - destruct f; try apply gen_inv_plain. intros E; inversion E; subst. apply gen_here.
    intros T v S. rewrite (L v T S). simpl. symmetry. apply Rinv_inv.
Qed.

Ltac step_gen :=
  match goal with
  | |- (let (_, _) := ?e in _) = _ -> _ => let E := fresh "E" in destruct e as [? ?] eqn:E
  | |- context [let (_, _) := ?e in _] => let E := fresh "E" in destruct e as [? ?] eqn:E
  end.
