(** The check of a certificate: [check] computes on two programs, a model and a derivative; [check_ok] says
    that if it returns true, the second program is the derivative of the first. *)

Require Import Reals Lra Lia List Bool ZArith QArith Qreals PArith FMapPositive.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadStatements SymadElementary SymadPrograms SymadEquality.
Import ListNotations.
Open Scope R_scope.

(** A value with a name. *)
Definition let_in {T : Type} (e : R) (k : R -> T) : T := k e.

Notation "'let*' x ':=' e 'in' k" := (let_in e (fun x : R => k)) (at level 200, x name, right associativity).

(** ** Programs as they are written *)

Inductive prog :=
  | Let (t : term) (p : prog)
  | Need (f : fn) (t : term) (p : prog)
  | Ret (ts : list term).

Definition get (E : M.t R) (k : positive) : R := match M.find k E with Some x => x | None => 0 end.

Fixpoint run {T : Type} (ret : list R -> T) (p : prog) (n : positive) (E : M.t R) : T :=
  match p with
  | Let t p => let_in (eval (get E) t) (fun x => run ret p (Pos.succ n) (M.add n x E))
  | Need _ _ p => run ret p n E
  | Ret ts => ret (map (eval (get E)) ts)
  end.

Lemma run_ret {T} (ret : list R -> T) p : forall n E, run ret p n E = ret (run (fun l => l) p n E).
Proof. induction p as [t p IH|f t p IH|ts]; intros n E; simpl; unfold let_in; auto. Qed.

Fixpoint quiet (p : prog) : bool :=
  match p with Let _ p => quiet p | Need _ _ _ => false | Ret _ => true end.

(** The conditions that a program states. *)
Fixpoint domain (p : prog) (n : positive) (E : M.t R) : Prop :=
  match p with
  | Let t p =>
    if quiet p then True else let_in (eval (get E) t) (fun x => domain p (Pos.succ n) (M.add n x E))
  | Need f t p => if quiet p then domain1 f (eval (get E) t) else domain1 f (eval (get E) t) /\ domain p n E
  | Ret _ => True
  end.

Fixpoint load (x : list R) (k : positive) (E : M.t R) : M.t R :=
  match x with [] => E | a :: r => load r (Pos.succ k) (M.add k a E) end.

Definition inputs (x : list R) : M.t R := load x 1 (M.empty R).

Fixpoint set (i : nat) (t : R) (x : list R) : list R :=
  match x, i with
  | [], _ => []
  | _ :: r, O => t :: r
  | a :: r, S i => a :: set i t r
  end.

(** ** Are the stated conditions sufficient? *)

Definition term_eq (a b : term) : {a = b} + {a <> b}.
Proof.
  decide equality; auto using Pos.eq_dec, Z.eq_dec, Nat.eq_dec, fn_eq, fn2_eq.
Defined.

Definition stated (facts : list (fn * term)) (f : fn) (t : term) : bool :=
  existsb (fun c => if fn_eq (fst c) f then if term_eq (snd c) t then true else false else false) facts.

Lemma stated_ok rho facts f t : all_hold rho facts -> stated facts f t = true -> domain1 f (eval rho t).
Proof.
  unfold stated, all_hold. intros H E. apply existsb_exists in E. destruct E as [[g u] [I E]].
  rewrite List.Forall_forall in H. specialize (H _ I). unfold holds in H. simpl in *.
  destruct (fn_eq g f) as [->|]; [|discriminate]. destruct (term_eq u t) as [->|]; [|discriminate]. exact H.
Qed.

(** The known facts about the sign of a term. *)
Record sign_facts := Signs { positive_ : bool; nonneg : bool; nonzero : bool }.

Definition unknown := Signs false false false.

Definition known (facts : list (fn * term)) (t : term) (s : sign_facts) : sign_facts :=
  let p := positive_ s || stated facts Log t || stated facts Sqrt t in
  Signs p (p || nonneg s) (p || nonzero s || stated facts Inv t).

Fixpoint sign_of (facts : list (fn * term)) (t : term) : sign_facts :=
  known facts t
    (match t with
     | Int z => Signs (0 <? z)%Z (0 <=? z)%Z (negb (z =? 0)%Z)
     | Pi => Signs true true true
     | Add a b =>
       let a := sign_of facts a in let b := sign_of facts b in
       Signs (positive_ a && nonneg b || nonneg a && positive_ b) (nonneg a && nonneg b) false
     | Mul a b =>
       let s := sign_of facts a in let u := sign_of facts b in
       Signs (positive_ s && positive_ u)
         (nonneg s && nonneg u || (if term_eq a b then true else false)) (nonzero s && nonzero u)
     | Div a b =>
       let s := sign_of facts a in let u := sign_of facts b in
       Signs (positive_ s && positive_ u) (nonneg s && positive_ u) (nonzero s && nonzero u)
     | Opp a => Signs false false (nonzero (sign_of facts a))
     | Pow a n =>
       let s := sign_of facts a in
       Signs (positive_ s || Nat.even n && nonzero s) (nonneg s || Nat.even n) (nonzero s)
     | App Inv a => let s := sign_of facts a in Signs (positive_ s) false (nonzero s)
     | App Exp _ | App Cosh _ | App Sech _ | App Sigmoid _ | App Softplus _ => Signs true true true
     | App Sqrt a => let s := sign_of facts a in Signs (positive_ s) true false
     | App Abs a => let s := sign_of facts a in Signs (nonzero s) true (nonzero s)
     | App2 Power _ _ => Signs true true true
     | App2 Maximum a b =>
       let s := sign_of facts a in let u := sign_of facts b in
       Signs (positive_ s || positive_ u) (nonneg s || nonneg u) false
     | App2 Less _ _ => Signs false true false
     | App2 Hypot a b =>
       let s := sign_of facts a in let u := sign_of facts b in
       Signs (nonzero s || nonzero u) true false
     | _ => unknown
     end).

Definition sign_right (x : R) (s : sign_facts) : Prop :=
  (positive_ s = true -> 0 < x) /\ (nonneg s = true -> 0 <= x) /\ (nonzero s = true -> x <> 0).

Lemma known_ok rho facts t s :
  all_hold rho facts -> sign_right (eval rho t) s -> sign_right (eval rho t) (known facts t s).
Proof.
  intros H (A & B & C). unfold known, sign_right; cbn [positive_ nonneg nonzero].
  assert (P : positive_ s || stated facts Log t || stated facts Sqrt t = true -> 0 < eval rho t).
  { intros E. apply orb_prop in E. destruct E as [E|E]; [apply orb_prop in E; destruct E as [E|E]; auto|].
    - apply (stated_ok _ _ _ _ H E).
    - apply (stated_ok _ _ _ _ H E). }
  split; [exact P|]. split; intros E.
  - apply orb_prop in E. destruct E as [E|E]; [apply Rlt_le; auto | auto].
  - apply orb_prop in E. destruct E as [E|E]; [apply orb_prop in E; destruct E as [E|E]|].
    + apply Rgt_not_eq, P, E.
    + auto.
    + apply (stated_ok _ _ _ _ H E).
Qed.

Lemma even_pow_nonneg x n : Nat.even n = true -> 0 <= x ^ n.
Proof.
  intros E. apply Nat.even_spec in E. destruct E as [m ->]. rewrite pow_mult. apply pow_le.
  simpl. rewrite Rmult_1_r. apply Rle_0_sqr.
Qed.

Ltac split_bools :=
  repeat match goal with
  | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
  | H : _ || _ = true |- _ => apply orb_prop in H; destruct H
  end.

Lemma sign_ok rho facts t : all_hold rho facts -> sign_right (eval rho t) (sign_of facts t).
Proof.
  intros H.
  assert (U : forall x, sign_right x unknown) by (intros; repeat split; discriminate).
  assert (P : forall x, 0 < x -> sign_right x (Signs true true true)) by (intros; repeat split; intros; lra).
  induction t as [k|z| |a IHa b IHb|a IHa b IHb|a IHa b IHb|a IHa b IHb|a IHa|a IHa n|f a IHa|g a IHa b IHb];
    cbn [sign_of]; apply known_ok; auto; cbn [eval].
  - repeat split; simpl; intros E.
    + apply Z.ltb_lt in E. now apply IZR_lt.
    + apply Z.leb_le in E. now apply IZR_le.
    + apply negb_true_iff, Z.eqb_neq in E. now apply not_0_IZR.
  - apply P, PI_RGT_0.
  - destruct IHa as (A1 & A2 & A3), IHb as (B1 & B2 & B3).
    repeat split; cbn [positive_ nonneg nonzero]; intros E; split_bools; try discriminate;
      try specialize (A1 ltac:(assumption)); try specialize (A2 ltac:(assumption));
      try specialize (B1 ltac:(assumption)); try specialize (B2 ltac:(assumption)); lra.
  - destruct IHa as (A1 & A2 & A3), IHb as (B1 & B2 & B3).
    repeat split; cbn [positive_ nonneg nonzero]; intros E; split_bools.
    + apply Rmult_lt_0_compat; auto.
    + apply Rmult_le_pos; auto.
    + destruct (term_eq a b) as [->|]; [|discriminate]. apply Rle_0_sqr.
    + apply Rmult_integral_contrapositive_currified; auto.
  - destruct IHa as (A1 & A2 & A3), IHb as (B1 & B2 & B3).
    repeat split; cbn [positive_ nonneg nonzero]; intros E; split_bools.
    + apply Rmult_lt_0_compat; [|apply Rinv_0_lt_compat]; auto.
    + apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat]; auto.
    + apply Rmult_integral_contrapositive_currified; [|apply Rinv_neq_0_compat]; auto.
  - destruct IHa as (A1 & A2 & A3). repeat split; cbn [positive_ nonneg nonzero]; intros E; try discriminate.
    now apply Ropp_neq_0_compat, A3.
  - destruct IHa as (A1 & A2 & A3). repeat split; cbn [positive_ nonneg nonzero]; intros E; split_bools.
    + apply pow_lt; auto.
    + assert (Q := even_pow_nonneg (eval rho a) n ltac:(assumption)).
      assert (eval rho a ^ n <> 0) by (apply pow_nonzero; auto). lra.
    + apply pow_le; auto.
    + now apply even_pow_nonneg.
    + apply pow_nonzero; auto.
  - destruct IHa as (A1 & A2 & A3).
    destruct f; auto using exp_pos, cosh_pos, sech_pos, sigmoid_pos, softplus_pos; cbn [value1];
      repeat split; cbn [positive_ nonneg nonzero]; intros E; try discriminate.
    + apply Rinv_0_lt_compat; auto.
    + apply Rinv_neq_0_compat; auto.
    + apply sqrt_lt_R0; auto.
    + apply sqrt_pos.
    + apply Rabs_pos_lt; auto.
    + apply Rabs_pos.
    + apply Rabs_no_R0; auto.
  - destruct g; auto.
    + apply P, exp_pos.
    + destruct IHa as (A1 & A2 & A3), IHb as (B1 & B2 & B3). cbn [value2]. unfold hypot.
      repeat split; cbn [positive_ nonneg nonzero]; intros E; split_bools; try discriminate.
      * apply sqrt_lt_R0. assert (Q : 0 < eval rho a ^ 2) by (apply pow2_gt_0; auto).
        generalize (pow2_ge_0 (eval rho b)). lra.
      * apply sqrt_lt_R0. assert (Q : 0 < eval rho b ^ 2) by (apply pow2_gt_0; auto).
        generalize (pow2_ge_0 (eval rho a)). lra.
      * apply sqrt_pos.
    + destruct IHa as (A1 & A2 & A3), IHb as (B1 & B2 & B3). cbn [value2].
      assert (L := Rmax_l (eval rho a) (eval rho b)). assert (M := Rmax_r (eval rho a) (eval rho b)).
      repeat split; cbn [positive_ nonneg nonzero]; intros E; split_bools; try discriminate;
        try specialize (A1 ltac:(assumption)); try specialize (A2 ltac:(assumption));
        try specialize (B1 ltac:(assumption)); try specialize (B2 ltac:(assumption)); lra.
    + cbn [value2]. unfold less. destruct (Rlt_dec _ _); repeat split; simpl; intros E; try discriminate; lra.
Qed.

Definition covered (facts : list (fn * term)) (c : fn * term) : bool :=
  let (f, t) := c in
  match f with
  | Inv | Acot | Csch | Coth | Abs | Sign | Heaviside => nonzero (sign_of facts t) || stated facts f t
  | Log | Sqrt | Log2 | Log10 => positive_ (sign_of facts t) || stated facts f t
  | Log1p => nonneg (sign_of facts t) || stated facts f t
  | Tan | Sec | Csc | Cot | Asin | Acos | Atanh | Acosh => stated facts f t
  | _ => true
  end.

Lemma covered_ok rho facts c : all_hold rho facts -> covered facts c = true -> holds rho c.
Proof.
  intros H E. destruct c as [f t]. unfold holds; cbn [fst snd].
  destruct (sign_ok rho facts t H) as (A & B & C).
  destruct f; cbn [covered] in E; try exact I; try (now apply (stated_ok _ _ _ _ H E));
    apply orb_prop in E; destruct E as [E|E]; try (now apply (stated_ok _ _ _ _ H E)); cbn [domain1]; auto.
  apply B in E. lra.
Qed.

Definition all_covered (facts : list (fn * term)) (t : term) : bool := forallb (covered facts) (needs t).

Lemma all_covered_ok rho facts t : all_hold rho facts -> all_covered facts t = true -> all_hold rho (needs t).
Proof.
  unfold all_covered, all_hold. intros H E. rewrite forallb_forall in E. apply List.Forall_forall.
  intros c I. apply (covered_ok rho facts); auto.
Qed.

(** A fact about values before [n] stays true when [n] gets its value. *)
Fixpoint without (n : positive) (t : term) : bool :=
  match t with
  | Var k => negb (Pos.eqb k n)
  | Int _ | Pi => true
  | Add a b | Sub a b | Mul a b | Div a b | App2 _ a b => without n a && without n b
  | Opp a | Pow a _ | App _ a => without n a
  end.

Lemma eval_ext rho sigma t : (forall j, rho j = sigma j) -> eval rho t = eval sigma t.
Proof. intros H. induction t; cbn [eval]; congruence. Qed.

Lemma get_add n x E j : get (M.add n x E) j = if Pos.eqb j n then x else get E j.
Proof.
  unfold get. destruct (Pos.eqb_spec j n) as [->|N]; [now rewrite M.gss | now rewrite M.gso].
Qed.

Lemma eval_without n x E t : without n t = true -> eval (get (M.add n x E)) t = eval (get E) t.
Proof.
  induction t; cbn [without eval]; intros H; try reflexivity;
    try (apply andb_prop in H; destruct H); try (f_equal; now auto).
  rewrite get_add. now destruct (Pos.eqb k n).
Qed.

Definition named_facts (facts : list (fn * term)) (t : term) (n : positive) : list (fn * term) :=
  let old := filter (fun c => without n (snd c)) facts in
  let s := sign_of facts t in
  (if positive_ s then [(Log, Var n)] else []) ++ (if nonzero s then [(Inv, Var n)] else []) ++ old.

Lemma named_facts_ok facts t n E :
  all_hold (get E) facts -> all_hold (get (M.add n (eval (get E) t) E)) (named_facts facts t n).
Proof.
  intros H. unfold named_facts. destruct (sign_ok (get E) facts t H) as (A & _ & C).
  unfold all_hold. rewrite !List.Forall_app. repeat split.
  - destruct (positive_ _); constructor; auto. unfold holds; simpl. rewrite get_add, Pos.eqb_refl. auto.
  - destruct (nonzero _); constructor; auto. unfold holds; simpl. rewrite get_add, Pos.eqb_refl. auto.
  - apply List.Forall_forall. intros c I. apply filter_In in I. destruct I as [I W].
    unfold holds. rewrite eval_without by assumption. unfold all_hold in H. rewrite List.Forall_forall in H.
    now apply H.
Qed.

Fixpoint enough (facts : list (fn * term)) (p : prog) (n : positive) : bool :=
  match p with
  | Let t p => all_covered facts t && enough (named_facts facts t n) p (Pos.succ n)
  | Need f t p => enough ((f, t) :: facts) p n
  | Ret ts => forallb (all_covered facts) ts
  end.

(** ** Programs to statements *)

Definition look (F : M.t positive) (zero k : positive) : positive :=
  match M.find k F with Some j => j | None => zero end.

Lemma look_add F zero n k j : look (M.add n k F) zero j = if Pos.eqb j n then k else look F zero j.
Proof.
  unfold look. destruct (Pos.eqb_spec j n) as [->|N]; [now rewrite M.gss | now rewrite M.gso].
Qed.

Fixpoint compile_all (rho : positive -> positive) (ts : list term) (s : state) : list positive * state :=
  match ts with
  | [] => ([], s)
  | t :: ts => let (k, s) := compile rho t s in let (ks, s) := compile_all rho ts s in (k :: ks, s)
  end.

Fixpoint compile_prog (p : prog) (n : positive) (F : M.t positive) (zero : positive) (s : state)
    : list positive * state :=
  match p with
  | Let t p =>
    let (k, s) := compile (look F zero) t s in compile_prog p (Pos.succ n) (M.add n k F) zero s
  | Need _ _ p => compile_prog p n F zero s
  | Ret ts => compile_all (look F zero) ts s
  end.

Lemma gen_all rho ts : forall s ks s', compile_all rho ts s = (ks, s') ->
  gen s s' (fun v => List.Forall (fun t => all_hold (fun j => v (rho j)) (needs t)) ts)
    (fun v => map v ks = map (eval (fun j => v (rho j))) ts).
Proof.
  induction ts as [|t ts IH]; intros s ks s'; cbn [compile_all].
  - intros E; inversion E; subst. now apply gen_here.
  - repeat step_gen. intros X; inversion X; subst.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_compile _ _ _ _ _ E) (IH _ _ _ E0)).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. inversion H; subst. tauto.
    + intros _ v _ (C1 & C2). now rewrite C1, C2.
Qed.

Definition linked (v : valuation) (E : M.t R) (F : M.t positive) (zero : positive) : Prop :=
  forall j, get E j = v (look F zero j).

Theorem gen_prog p : forall n F zero s ks s', compile_prog p n F zero s = (ks, s') ->
  gen s s'
    (fun v => exists facts E, linked v E F zero /\ enough facts p n = true /\ all_hold (get E) facts /\ domain p n E)
    (fun v => forall E, linked v E F zero -> map v ks = run (fun l => l) p n E).
Proof.
  induction p as [t p IH|f t p IH|ts]; intros n F zero s ks s'; cbn [compile_prog].
  - step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_compile _ _ _ _ _ E) (IH _ _ _ _ _ _ E1)).
    assert (K : forall v H, v p0 = eval (fun j => v (look F zero j)) t -> linked v H F zero ->
                linked v (M.add n (eval (get H) t) H) (M.add n p0 F) zero).
    { intros v H C L j. rewrite get_add, look_add. destruct (Pos.eqb j n); [|apply L].
      rewrite C. apply eval_ext. exact L. }
    apply (gen_weaken _ _ _ _ _ _ G).
    + intros v (facts & H & L & N & A & D). cbn [enough] in N. apply andb_prop in N. destruct N as [N1 N2].
      split.
      * assert (Q := all_covered_ok (get H) facts t A N1). unfold all_hold in *.
        apply (List.Forall_impl _ (P := holds (get H))); [|exact Q]. intros c W. unfold holds in *.
        erewrite eval_ext; [exact W|]. intros j. symmetry. apply L.
      * intros C. exists (named_facts facts t n), (M.add n (eval (get H) t) H).
        repeat split; auto using named_facts_ok.
        cbn [domain] in D. destruct (quiet p) eqn:Q; [|exact D].
        clear -Q. generalize (Pos.succ n) (M.add n (eval (get H) t) H).
        induction p; simpl in *; intros; try discriminate; auto. now rewrite Q.
    + intros _ v _ (C1 & C2) H L. cbn [run]. unfold let_in. apply C2. now apply K.
  - intros E. apply IH in E. apply (gen_weaken _ _ _ _ _ _ E).
    + intros v (facts & H & L & N & A & D). exists ((f, t) :: facts), H. cbn [enough domain] in *.
      repeat split; auto.
      * constructor; [|exact A]. unfold holds. simpl. now destruct (quiet p).
      * destruct (quiet p) eqn:Q; [|tauto]. clear -Q. revert n H.
        induction p; simpl in *; intros; try discriminate; auto. now rewrite Q.
    + intros _ v _ C H L. cbn [run]. now apply C.
  - intros E. apply gen_all in E. apply (gen_weaken _ _ _ _ _ _ E).
    + intros v (facts & H & L & N & A & D). cbn [enough] in N. apply List.Forall_forall. intros t I.
      rewrite forallb_forall in N. assert (Q := all_covered_ok (get H) facts t A (N t I)). unfold all_hold in *.
      apply (List.Forall_impl _ (P := holds (get H))); [|exact Q]. intros c W. unfold holds in *.
      erewrite eval_ext; [exact W|]. intros j. symmetry. apply L.
    + intros _ v _ C H L. cbn [run]. rewrite C. apply map_ext. intros t. apply eval_ext. intros j. symmetry. apply L.
Qed.

(** ** The values of statements *)

Definition beta (x : list R) (j : positive) : R := nth (pred (Pos.to_nat j)) x 0.

Fixpoint build (x : list R) (c : code) : valuation :=
  match c with
  | [] => beta x
  | (k, o) :: c => fun j => if Pos.eqb j k then evalop (build x c) o else build x c j
  end.

Definition arguments (o : op) : list positive :=
  match o with
  | OConst _ | OPi => []
  | OAdd a b | OMul a b | OApp2 _ a b => [a; b]
  | OOpp a | OPow a _ | OApp _ a => [a]
  end.

Definition top (n : nat) (c : code) : positive :=
  match c with [] => Pos.of_succ_nat n | (k, _) :: _ => Pos.succ k end.

(** Each statement reads only values of earlier statements. *)
Fixpoint ordered (n : nat) (c : code) : bool :=
  match c with
  | [] => true
  | (k, o) :: c => Pos.eqb k (top n c) && forallb (fun a => Pos.ltb a k) (arguments o) && ordered n c
  end.

Lemma evalop_ext v w o : (forall a, In a (arguments o) -> v a = w a) -> evalop v o = evalop w o.
Proof. destruct o; simpl; intros H; rewrite ?H; auto. Qed.

Lemma ordered_below n c : ordered n c = true ->
  List.Forall (fun s => (fst s < top n c)%positive /\ List.Forall (fun a => a < fst s)%positive (arguments (snd s))) c.
Proof.
  induction c as [|[k o] c IH]; intros H; constructor.
  - cbn [ordered] in H. apply andb_prop in H. destruct H as [H _]. apply andb_prop in H. destruct H as [_ H].
    simpl. split; [lia|]. apply List.Forall_forall. rewrite forallb_forall in H. intros a I.
    now apply Pos.ltb_lt, H.
  - cbn [ordered] in H. apply andb_prop in H. destruct H as [H O]. apply andb_prop in H. destruct H as [K _].
    apply Pos.eqb_eq in K. specialize (IH O). simpl. rewrite K.
    apply (List.Forall_impl _ (P := fun s => (fst s < top n c)%positive /\ List.Forall (fun a => a < fst s)%positive (arguments (snd s)))); [|exact IH].
    intros [j p] [A B]. simpl in *. split; [lia | exact B].
Qed.

Lemma build_sat n x c : ordered n c = true -> Sat (build x c) c.
Proof.
  induction c as [|[k o] c IH]; intros H; [constructor|].
  assert (O := H). cbn [ordered] in H. apply andb_prop in H. destruct H as [H1 H3]. apply andb_prop in H1.
  destruct H1 as [H1 H2]. apply Pos.eqb_eq in H1. rewrite forallb_forall in H2.
  constructor.
  - cbn [fst snd build]. rewrite Pos.eqb_refl. apply evalop_ext. intros a I. apply H2, Pos.ltb_lt in I.
    destruct (Pos.eqb_spec a k); [lia | reflexivity].
  - assert (B := ordered_below n c H3). specialize (IH H3). unfold Sat in *.
    rewrite List.Forall_forall in *. intros [j p] I. specialize (B _ I). specialize (IH _ I). cbn [fst snd] in *.
    destruct B as [B1 B2]. cbn [build]. destruct (Pos.eqb_spec j k) as [->|N]; [lia|]. rewrite IH.
    apply evalop_ext. intros a J. rewrite List.Forall_forall in B2. specialize (B2 _ J). simpl in B2.
    destruct (Pos.eqb_spec a k); [lia | reflexivity].
Qed.

Lemma top_large n c : ordered n c = true -> (Pos.of_succ_nat n <= top n c)%positive.
Proof.
  induction c as [|[k o] c IH]; intros H; simpl; [lia|]. cbn [ordered] in H.
  apply andb_prop in H. destruct H as [H O]. apply andb_prop in H. destruct H as [K _].
  apply Pos.eqb_eq in K. specialize (IH O). lia.
Qed.

Lemma build_input n x c j : ordered n c = true -> (j < Pos.of_succ_nat n)%positive -> build x c j = beta x j.
Proof.
  induction c as [|[k o] c IH]; intros H J; [reflexivity|]. cbn [ordered] in H.
  apply andb_prop in H. destruct H as [H O]. apply andb_prop in H. destruct H as [K _].
  apply Pos.eqb_eq in K. assert (T := top_large n c O). cbn [build].
  destruct (Pos.eqb_spec j k); [lia|]. now apply IH.
Qed.

(** ** Derivatives along a path *)

Lemma evalop_derive (V : R -> valuation) t0 k o (D : valuation) :
  V t0 k = evalop (V t0) o -> domain_op (V t0) o ->
  (forall a, In a (arguments o) -> is_derive (fun t => V t a) t0 (D a)) ->
  is_derive (fun t => evalop (V t) o) t0 (tangent (V t0) D k o).
Proof.
  intros K N A. unfold tangent, rename.
  destruct o as [q| |a b|a b|a|a n|f a|g a b]; cbn [partials fst snd slopes fold_right evalop arguments] in *.
  - apply @is_derive_const.
  - apply @is_derive_const.
  - evar_last. apply d_sum; apply A; simpl; auto. simpl. ring.
  - evar_last. apply d_product; apply A; simpl; auto. simpl. ring.
  - evar_last. apply (is_derive_opp (fun t => V t a)), A; simpl; auto. unfold opp; simpl. ring.
  - evar_last. apply is_derive_pow, A; simpl; auto. cbn [eval names]. rewrite INR_IZR_INZ. ring.
  - evar_last. apply (d_chain (value1 f) (fun t => V t a)); [apply (slope1_ok f (V t0 a) (V t0 a)); exact N|].
    apply A; simpl; auto. rewrite Rplus_0_r. f_equal. apply eval_ext. intros j. simpl in K. rewrite <- K.
    unfold args2, names. destruct j as [j|j|]; try reflexivity; destruct j; reflexivity.
  - evar_last. apply (slope2_ok g (fun t => V t a) (fun t => V t b)); [exact N | |]; apply A; simpl; auto.
    simpl in K. rewrite <- K. rewrite Rplus_0_r.
    f_equal; f_equal; apply eval_ext; intros j; unfold args2, names; destruct j as [j|j|]; try reflexivity;
      destruct j; reflexivity.
Qed.

Lemma path n c (V : R -> valuation) t0 :
  ordered n c = true -> (forall t, Sat (V t) c) -> Dom (V t0) c ->
  (forall j, (j < Pos.of_succ_nat n)%positive -> ex_derive (fun t => V t j) t0) ->
  let D j := Derive (fun t => V t j) t0 in
  (forall j, (j < top n c)%positive -> ex_derive (fun t => V t j) t0) /\
  List.Forall (fun p => D (fst p) = tangent (V t0) D (fst p) (snd p)) c.
Proof.
  intros O S N I D. induction c as [|[k o] c IH]; [split; [exact I | constructor]|].
  cbn [ordered] in O. apply andb_prop in O. destruct O as [H O]. apply andb_prop in H. destruct H as [K A].
  apply Pos.eqb_eq in K. rewrite forallb_forall in A.
  destruct IH as [X T]; auto.
  { intros t. specialize (S t). now inversion S. }
  { now inversion N. }
  assert (Q : is_derive (fun t => V t k) t0 (tangent (V t0) D k o)).
  { apply (is_derive_ext (fun t => evalop (V t) o)).
    - intros t. specialize (S t). inversion S; subst. now symmetry.
    - apply evalop_derive.
      + specialize (S t0). now inversion S.
      + now inversion N.
      + intros a J. apply A, Pos.ltb_lt in J. apply Derive_correct, X. rewrite <- K. exact J. }
  split.
  - intros j J. simpl in J. destruct (Pos.eq_dec j k) as [->|M].
    + now exists (tangent (V t0) D k o).
    + apply X. rewrite <- K. lia.
  - constructor; [|exact T]. cbn [fst snd]. unfold D at 1. now apply is_derive_unique.
Qed.

(** ** The check *)

Fixpoint identity (n : nat) (k : positive) (F : M.t positive) : M.t positive :=
  match n with O => F | S n => identity n (Pos.succ k) (M.add k k F) end.

Fixpoint coefficient (zero : positive) (acc : adjoints) (j : positive) : positive :=
  match acc with
  | [] => zero
  | (k, r) :: acc => if Pos.eqb k j then r else coefficient zero acc j
  end.

(** True if the adjoints are those of inputs only, each once, in descending order. *)
Fixpoint of_inputs (bound : positive) (acc : adjoints) : bool :=
  match acc with [] => true | (k, _) :: acc => Pos.ltb k bound && of_inputs k acc end.

Fixpoint sweeps (c : code) (one : positive) (outs : list positive) (s : state) : list adjoints * state :=
  match outs with
  | [] => ([], s)
  | o :: outs =>
    let (acc, s) := sweep c [(o, one)] s in
    let (accs, s) := sweeps c one outs s in (acc :: accs, s)
  end.

Definition row (zero : positive) (n : nat) (acc : adjoints) : list positive :=
  map (fun i => coefficient zero acc (Pos.of_succ_nat i)) (seq 0 n).

Fixpoint same_lists (same : positive -> positive -> bool) (a b : list positive) : bool :=
  match a, b with
  | [], [] => true
  | i :: a, j :: b => same i j &&& same_lists same a b
  | _, _ => false
  end.

Definition start (n : nat) (deep : bool) : state :=
  State (Pos.of_succ_nat n) [] (M.empty op) (M.empty Z) (M.empty positive) deep.

Definition below (k : positive) (l : list positive) : bool := forallb (fun j => Pos.ltb j k) l.

(** True if [G], with the entries of a matrix row by row, is the Jacobian of [U], a program of [n] inputs, with
    respect to the first [cols] inputs. *)
Definition check_as (deep : bool) (n cols : nat) (U G : prog) : bool :=
  let first := Pos.of_succ_nat n in
  let F := identity n 1 (M.empty positive) in
  let (zero, s) := emit (OConst 0) (start n deep) in
  let (one, s) := emit (OConst 1) s in
  let (outs, s) := compile_prog U first F zero s in
  let u := written s in
  let (accs, s) := sweeps u one outs s in
  let (entries, s) := compile_prog G first F zero s in
  let (classes, facts) := classes_of s u n in
  ordered n (written s) && enough [] U first && below (top n u) outs && forallb (of_inputs first) accs
  && Nat.leb cols n && same_lists (agree s classes facts) (flat_map (row zero cols) accs) entries.

(** Functions are written by as few exponentials and logarithms as possible only if the check fails without. *)
Definition check (n cols : nat) (U G : prog) : bool :=
  if check_as false n cols U G then true else check_as true n cols U G.

Lemma gen_sweeps c one outs : forall s accs s', sweeps c one outs s = (accs, s') ->
  gen s s' never (fun v => forall D,
    List.Forall (fun p => D (fst p) = tangent v D (fst p) (snd p)) c -> v one = 1 ->
    List.Forall2 (fun o acc => total v D acc = D o) outs accs).
Proof.
  induction outs as [|o outs IH]; intros s accs s'; cbn [sweeps].
  - intros E; inversion E; subst. apply gen_here. intros. constructor.
  - repeat step_gen. intros X; inversion X; subst.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_sweep _ _ _ _ _ E) (IH _ _ _ E0)).
    apply (gen_weaken _ _ _ _ _ _ G); [contradiction|].
    intros _ v _ (C1 & C2) D T O. constructor; [|now apply C2].
    rewrite (C1 D T). simpl. rewrite O. ring.
Qed.

Lemma total_zero v i acc : forall bound, of_inputs bound acc = true -> (bound <= i)%positive ->
  total v (fun j => if Pos.eqb j i then 1 else 0) acc = 0.
Proof.
  induction acc as [|[k r] acc IH]; intros bound H B; [reflexivity|].
  cbn [of_inputs] in H. apply andb_prop in H. destruct H as [K H]. apply Pos.ltb_lt in K.
  cbn [total fold_right fst snd]. fold (total v (fun j => if Pos.eqb j i then 1 else 0) acc).
  rewrite (IH k H) by lia. destruct (Pos.eqb_spec k i); [lia | ring].
Qed.

Lemma total_unit v zero i acc : v zero = 0 -> forall bound, of_inputs bound acc = true ->
  total v (fun j => if Pos.eqb j i then 1 else 0) acc = v (coefficient zero acc i).
Proof.
  intros Z. induction acc as [|[k r] acc IH]; intros bound H; [now symmetry|].
  cbn [of_inputs] in H. apply andb_prop in H. destruct H as [K H].
  cbn [total fold_right fst snd coefficient]. fold (total v (fun j => if Pos.eqb j i then 1 else 0) acc).
  destruct (Pos.eqb_spec k i) as [->|N].
  - rewrite (total_zero v i acc i H) by lia. ring.
  - rewrite (IH k H). ring.
Qed.

Lemma total_ext v D D' bound acc : of_inputs bound acc = true -> (forall j, (j < bound)%positive -> D j = D' j) ->
  total v D acc = total v D' acc.
Proof.
  revert bound. induction acc as [|[k r] acc IH]; intros bound H E; [reflexivity|].
  cbn [of_inputs] in H. apply andb_prop in H. destruct H as [K H]. apply Pos.ltb_lt in K.
  cbn [total fold_right fst snd]. fold (total v D acc). fold (total v D' acc).
  rewrite (E k K). rewrite (IH k H); [reflexivity|]. intros j J. apply E. lia.
Qed.

Lemma get_load x : forall k E j,
  get (load x k E) j
  = if Pos.leb k j then nth (Pos.to_nat j - Pos.to_nat k) x (get E j) else get E j.
Proof.
  induction x as [|a r IH]; intros k E j; cbn [load].
  - destruct (Pos.leb k j); [|reflexivity]. now destruct (Pos.to_nat j - Pos.to_nat k)%nat.
  - rewrite IH, get_add. destruct (Pos.leb_spec (Pos.succ k) j), (Pos.leb_spec k j); try lia.
    + destruct (Pos.eqb_spec j k); [lia|]. rewrite Pos2Nat.inj_succ.
      replace (Pos.to_nat j - Pos.to_nat k)%nat with (S (Pos.to_nat j - S (Pos.to_nat k))) by lia. reflexivity.
    + assert (j = k) by lia. subst. rewrite Pos.eqb_refl, Nat.sub_diag. reflexivity.
    + destruct (Pos.eqb_spec j k); [lia | reflexivity].
Qed.

Lemma get_inputs x j : get (inputs x) j = beta x j.
Proof.
  unfold inputs, beta. rewrite get_load. destruct (Pos.leb_spec 1 j); [|lia].
  unfold get. rewrite M.gempty. f_equal. simpl. lia.
Qed.

Lemma look_identity zero n : forall k F j,
  look (identity n k F) zero j
  = if Pos.leb k j && Pos.ltb j (Pos.of_nat (Pos.to_nat k + n)) then j else look F zero j.
Proof.
  induction n as [|n IH]; intros k F j; cbn [identity].
  - rewrite Nat.add_0_r, Pos2Nat.id. destruct (Pos.leb_spec k j), (Pos.ltb_spec j k); try lia; reflexivity.
  - rewrite IH, look_add. rewrite Pos2Nat.inj_succ. replace (S (Pos.to_nat k) + n)%nat with (Pos.to_nat k + S n)%nat by lia.
    destruct (Pos.leb_spec (Pos.succ k) j), (Pos.leb_spec k j), (Pos.eqb_spec j k); simpl; try lia; try reflexivity.
    subst. destruct (Pos.ltb_spec k (Pos.of_nat (Pos.to_nat k + S n))); [reflexivity | lia].
Qed.

Lemma look_inputs zero n j :
  look (identity n 1 (M.empty positive)) zero j = if Pos.ltb j (Pos.of_succ_nat n) then j else zero.
Proof.
  rewrite look_identity. replace (Pos.of_nat (Pos.to_nat 1 + n)) with (Pos.of_succ_nat n) by exact (Pos.of_nat_succ n).
  destruct (Pos.leb_spec 1 j); [|lia]. simpl. destruct (Pos.ltb j (Pos.of_succ_nat n)); [reflexivity|].
  unfold look. now rewrite M.gempty.
Qed.

Lemma same_lists_ok (v : valuation) same : (forall i j, same i j = true -> v i = v j) ->
  forall a b, same_lists same a b = true -> map v a = map v b.
Proof.
  intros C. induction a as [|i a IH]; intros [|j b] H; try discriminate; [reflexivity|].
  cbn [same_lists] in H. apply andb_prop in H. destruct H as [E H]. simpl. now rewrite (IH b H), (C i j E).
Qed.

Lemma nth_rows {A} (f : A -> list R) n l : (forall a, In a l -> length (f a) = n) ->
  forall m i d, (m < length l)%nat -> (i < n)%nat ->
  nth (m * n + i) (flat_map f l) 0 = nth i (f (nth m l d)) 0.
Proof.
  intros H. induction l as [|a l IH]; intros m i d M I; [simpl in M; lia|]. simpl flat_map.
  destruct m as [|m].
  - simpl. rewrite app_nth1; [reflexivity|]. rewrite H by now left. exact I.
  - assert (N : length (f a) = n) by (apply H; now left).
    rewrite app_nth2 by (rewrite N; simpl; lia). rewrite N.
    replace (S m * n + i - n)%nat with (m * n + i)%nat by (simpl; lia).
    simpl nth. apply IH; [|simpl in M; lia | exact I]. intros b J. apply H. now right.
Qed.

Lemma set_nth i t x j : (i < length x)%nat -> nth j (set i t x) 0 = if Nat.eqb j i then t else nth j x 0.
Proof.
  revert i j. induction x as [|a x IH]; intros i j H; [simpl in H; lia|].
  destruct i, j; simpl; try reflexivity. apply IH. simpl in H. lia.
Qed.

Lemma set_same i x : (i < length x)%nat -> set i (nth i x 0) x = x.
Proof.
  revert i. induction x as [|a x IH]; intros i H; [simpl in H; lia|].
  destruct i; simpl; [reflexivity|]. f_equal. apply IH. simpl in H. lia.
Qed.

Lemma set_length i t x : length (set i t x) = length x.
Proof. revert i. induction x; intros [|i]; simpl; auto. Qed.

Fixpoint outputs (p : prog) : nat :=
  match p with Let _ p | Need _ _ p => outputs p | Ret ts => length ts end.

Lemma run_length p : forall n E, length (run (fun l => l) p n E) = outputs p.
Proof. induction p; intros; simpl; unfold let_in; auto. now rewrite map_length. Qed.

Theorem check_as_ok deep n cols U G : check_as deep n cols U G = true ->
  forall x : list R, length x = n -> domain U (Pos.of_succ_nat n) (inputs x) ->
  forall m i, (m < outputs U)%nat -> (i < cols)%nat ->
  is_derive (fun t => nth m (run (fun l => l) U (Pos.of_succ_nat n) (inputs (set i t x))) 0) (nth i x 0)
    (nth (m * cols + i) (run (fun l => l) G (Pos.of_succ_nat n) (inputs x)) 0).
Proof.
  unfold check_as. set (first := Pos.of_succ_nat n). set (F := identity n 1 (M.empty positive)).
  destruct (emit (OConst 0) (start n deep)) as [zero s0] eqn:E0.
  destruct (emit (OConst 1) s0) as [one s1] eqn:E1.
  destruct (compile_prog U first F zero s1) as [outs s2] eqn:E2.
  destruct (sweeps (written s2) one outs s2) as [accs s3] eqn:E3.
  destruct (compile_prog G first F zero s3) as [entries s4] eqn:E4.
  destruct (classes_of s4 (written s2) n) as [classes facts] eqn:E5.
  set (c := written s2). intros H x L Dx m i Hm Hi.
  apply andb_prop in H. destruct H as [H Same]. apply andb_prop in H. destruct H as [H Fit].
  apply Nat.leb_le in Fit. apply andb_prop in H. destruct H as [H Only].
  apply andb_prop in H. destruct H as [H Below]. apply andb_prop in H. destruct H as [Order Enough].
  assert (T0 : table_ok (start n deep)) by (split; intros k o Z; simpl in Z; now rewrite M.gempty in Z).
  assert (G0 := gen_emit _ _ _ _ E0). assert (G1 := gen_emit _ _ _ _ E1).
  assert (G2 := gen_prog _ _ _ _ _ _ _ E2). assert (G3 := gen_sweeps _ _ _ _ _ _ E3).
  assert (G4 := gen_prog _ _ _ _ _ _ _ E4).
  assert (T1 := gen_table _ _ _ _ G0 T0). assert (T2 := gen_table _ _ _ _ G1 T1).
  assert (T3 := gen_table _ _ _ _ G2 T2). assert (T4 := gen_table _ _ _ _ G3 T3).
  assert (T5 := gen_table _ _ _ _ G4 T4).
  set (V y := build y (written s4)).
  assert (S4 : forall y, Sat (V y) (written s4)) by (intros y; now apply build_sat with n).
  assert (S3 : forall y, Sat (V y) (written s3)) by (intros y; eapply Sat_ext; [apply G4 | apply S4]).
  assert (S2 : forall y, Sat (V y) c) by (intros y; eapply Sat_ext; [apply G3 | apply S3]).
  assert (S1 : forall y, Sat (V y) (written s1)) by (intros y; eapply Sat_ext; [apply G2 | apply S2]).
  assert (S0 : forall y, Sat (V y) (written s0)) by (intros y; eapply Sat_ext; [apply G1 | apply S1]).
  assert (Zero : forall y, V y zero = 0).
  { intros y. rewrite (gen_claim _ _ _ _ G0 T0 _ (S0 y)). apply RMicromega.Q2R_0. }
  assert (One : forall y, V y one = 1).
  { intros y. rewrite (gen_claim _ _ _ _ G1 T1 _ (S1 y)). apply RMicromega.Q2R_1. }
  assert (In : forall y j, (j < first)%positive -> V y j = beta y j).
  { intros y j J. unfold V. now apply build_input with n. }
  assert (Linked : forall y, length y = n -> linked (V y) (inputs y) F zero).
  { intros y Ly j. rewrite get_inputs. unfold F. rewrite look_inputs. fold first.
    destruct (Pos.ltb_spec j first); [symmetry; now apply In|]. rewrite Zero.
    unfold beta. apply nth_overflow. unfold first in *. lia. }
  assert (Outs : forall y, length y = n -> map (V y) outs = run (fun l => l) U first (inputs y)).
  { intros y Ly. apply (gen_claim _ _ _ _ G2 T2 _ (S2 y)). now apply Linked. }
  assert (Entries : map (V x) entries = run (fun l => l) G first (inputs x)).
  { apply (gen_claim _ _ _ _ G4 T4 _ (S4 x)). now apply Linked. }
  assert (Domain : Dom (V x) c).
  { apply (gen_dom _ _ _ _ G2 T2 _ (S2 x)).
    - apply (gen_dom _ _ _ _ G1 T1 _ (S1 x)); [|exact I].
      apply (gen_dom _ _ _ _ G0 T0 _ (S0 x)); [constructor | exact I].
    - exists [], (inputs x). repeat split; auto. constructor. }
  (* the path: the i-th input moves *)
  set (W t := V (set i t x)). set (t0 := nth i x 0).
  assert (W0 : W t0 = V x) by (unfold W, t0; rewrite set_same; [reflexivity | lia]).
  assert (Ordered : ordered n c = true).
  { destruct (gen_ext _ _ _ _ G3) as [e3 X3]. destruct (gen_ext _ _ _ _ G4) as [e4 X4].
    unfold c. revert Order. rewrite X4, X3, app_assoc. clear. intros Order.
    induction (e4 ++ e3) as [|[k o] e IH]; [exact Order|]. simpl app in Order. cbn [ordered] in Order.
    apply andb_prop in Order. now apply IH. }
  assert (Step : forall j t, (j < first)%positive ->
            W t j = if Nat.eqb (pred (Pos.to_nat j)) i then t else nth (pred (Pos.to_nat j)) x 0).
  { intros j t J. unfold W. rewrite In by exact J. unfold beta. apply set_nth. lia. }
  assert (Moves : forall j, (j < first)%positive ->
            is_derive (fun t => W t j) t0 (if Pos.eqb j (Pos.of_succ_nat i) then 1 else 0)).
  { intros j J. apply (is_derive_ext (fun t => if Nat.eqb (pred (Pos.to_nat j)) i then t else nth (pred (Pos.to_nat j)) x 0)).
    - intros t. symmetry. now apply Step.
    - destruct (Nat.eqb_spec (pred (Pos.to_nat j)) i), (Pos.eqb_spec j (Pos.of_succ_nat i)); try lia.
      + apply (is_derive_id t0).
      + apply @is_derive_const. }
  destruct (path n c W t0) as [Smooth Tangents].
  { exact Ordered. }
  { intros t. apply S2. }
  { rewrite W0. exact Domain. }
  { intros j J. eexists. now apply Moves. }
  set (D j := Derive (fun t => W t j) t0) in *. rewrite W0 in Tangents.
  assert (Totals := gen_claim _ _ _ _ G3 T3 _ (S3 x) D Tangents (One x)).
  assert (Rows : map (V x) (flat_map (row zero cols) accs) = map (V x) entries).
  { apply (same_lists_ok (V x) (agree s4 classes facts)); [|exact Same].
    destruct (classes_ok s4 c (V x) n T5 (S4 x) (S2 x) Domain) as [R1 R2]. unfold c in R1, R2.
    rewrite E5 in R1, R2. intros i0 j0. now apply agree_ok. }
  assert (Count : length outs = outputs U).
  { rewrite <- (run_length U first (inputs x)). rewrite <- (Outs x L). now rewrite map_length. }
  assert (Count2 : length accs = length outs) by (clear -Totals; induction Totals; simpl; auto).
  assert (Entry : nth (m * cols + i) (run (fun l => l) G first (inputs x)) 0 = D (nth m outs one)).
  { rewrite <- Entries, <- Rows.
    assert (Q : map (V x) (flat_map (row zero cols) accs) = flat_map (fun a => map (V x) (row zero cols a)) accs).
    { clear. induction accs as [|a r IH]; [reflexivity|]. simpl. now rewrite map_app, IH. }
    rewrite Q. rewrite (nth_rows (fun a => map (V x) (row zero cols a)) cols accs) with (d := []); [| | lia | exact Hi].
    2: { intros a _. unfold row. now rewrite !map_length, seq_length. }
    assert (Z : total (V x) D (nth m accs []) = D (nth m outs one)).
    { clear -Totals Hm Count. revert m Hm. rewrite <- Count. clear Count.
      induction Totals as [|o a os as_ E T IH]; intros m Hm; [simpl in Hm; lia|].
      destruct m; simpl; [exact E|]. apply IH. simpl in Hm. lia. }
    rewrite <- Z.
    assert (B : of_inputs first (nth m accs []) = true).
    { rewrite forallb_forall in Only. apply Only, nth_In. lia. }
    rewrite (total_ext (V x) D (fun j => if Pos.eqb j (Pos.of_succ_nat i) then 1 else 0) first _ B).
    - rewrite (total_unit (V x) zero _ _ (Zero x) first B). unfold row.
      rewrite map_map. rewrite nth_indep with (d' := V x (coefficient zero (nth m accs []) (Pos.of_succ_nat 0)))
        by (now rewrite map_length, seq_length).
      rewrite (map_nth (fun k => V x (coefficient zero (nth m accs []) (Pos.of_succ_nat k)))).
      now rewrite seq_nth by exact Hi.
    - intros j J. unfold D. now apply is_derive_unique, Moves. }
  rewrite Entry. apply (is_derive_ext (fun t => W t (nth m outs one))).
  - intros t. rewrite <- Outs by (rewrite set_length; exact L).
    rewrite nth_indep with (d' := V (set i t x) one) by (rewrite map_length; lia).
    symmetry. apply map_nth.
  - apply Derive_correct, Smooth. unfold below in Below. rewrite forallb_forall in Below.
    apply Pos.ltb_lt, Below, nth_In. lia.
Qed.

Theorem check_ok n cols U G : check n cols U G = true ->
  forall x : list R, length x = n -> domain U (Pos.of_succ_nat n) (inputs x) ->
  forall m i, (m < outputs U)%nat -> (i < cols)%nat ->
  is_derive (fun t => nth m (run (fun l => l) U (Pos.of_succ_nat n) (inputs (set i t x))) 0) (nth i x 0)
    (nth (m * cols + i) (run (fun l => l) G (Pos.of_succ_nat n) (inputs x)) 0).
Proof.
  unfold check. destruct (check_as false n cols U G) eqn:E; intros H.
  - exact (check_as_ok false n cols U G E).
  - exact (check_as_ok true n cols U G H).
Qed.

(** The correctness of [check] for one entry: f is the model as a function of one input, g is the entry. *)
Theorem entry n cols U G : check n cols U G = true ->
  forall (x : list R) (m i : nat) (f : R -> R) (a g : R),
  length x = n -> domain U (Pos.of_succ_nat n) (inputs x) -> (m < outputs U)%nat -> (i < cols)%nat ->
  nth i x 0 = a ->
  (forall t, run (fun l => nth m l 0) U (Pos.of_succ_nat n) (inputs (set i t x)) = f t) ->
  run (fun l => nth (m * cols + i) l 0) G (Pos.of_succ_nat n) (inputs x) = g ->
  is_derive f a g.
Proof.
  intros C x m i f a g L D Hm Hi <- F <-. rewrite run_ret.
  apply (is_derive_ext (fun t => nth m (run (fun l => l) U (Pos.of_succ_nat n) (inputs (set i t x))) 0)).
  - intros t. rewrite <- F. symmetry. apply (run_ret (fun l => nth m l 0)).
  - now apply check_ok.
Qed.

(** The two forms of [entry] that printed certificates apply. *)

Theorem entry_of_value n cols U G : check n cols U G = true ->
  forall (m i : nat) (x : list R) (f : R -> R) (a : R) (g : list R),
  (Nat.ltb m (outputs U) && Nat.ltb i cols && Nat.eqb (length x) n)%bool = true ->
  domain U (Pos.of_succ_nat n) (inputs x) -> nth i x 0 = a ->
  (forall t, run (fun l => nth m l 0) U (Pos.of_succ_nat n) (inputs (set i t x)) = f t) ->
  run (fun l => l) G (Pos.of_succ_nat n) (inputs x) = g ->
  is_derive f a (nth (m * cols + i) g 0).
Proof.
  intros C m i x f a g B D A F <-. apply andb_prop in B. destruct B as [B L]. apply andb_prop in B.
  destruct B as [M I]. apply Nat.ltb_lt in M. apply Nat.ltb_lt in I. apply Nat.eqb_eq in L.
  apply (entry n cols U G C x m i f a); auto. apply (run_ret (fun l => nth (m * cols + i) l 0)).
Qed.

Theorem entry_of_list n cols U G : check n cols U G = true ->
  forall (m i : nat) (x : list R) (f : R -> list R) (a : R) (g : list R),
  (Nat.ltb m (outputs U) && Nat.ltb i cols && Nat.eqb (length x) n)%bool = true ->
  domain U (Pos.of_succ_nat n) (inputs x) -> nth i x 0 = a ->
  (forall t, run (fun l => l) U (Pos.of_succ_nat n) (inputs (set i t x)) = f t) ->
  run (fun l => l) G (Pos.of_succ_nat n) (inputs x) = g ->
  is_derive (fun t => nth m (f t) 0) a (nth (m * cols + i) g 0).
Proof.
  intros C m i x f a g B D A F E. apply (entry_of_value n cols U G C m i x (fun t => nth m (f t) 0)); auto.
  intros t. rewrite run_ret. now rewrite F.
Qed.

(** Arrays with one element replaced. *)
Definition at1 (x : nat -> R) (i : nat) (t : R) : nat -> R := fun k => if Nat.eqb k i then t else x k.
Definition at2 (x : nat -> nat -> R) (i j : nat) (t : R) : nat -> nat -> R :=
  fun k l => if (Nat.eqb k i && Nat.eqb l j)%bool then t else x k l.
Definition at3 (x : nat -> nat -> nat -> R) (i j h : nat) (t : R) : nat -> nat -> nat -> R :=
  fun k l m => if (Nat.eqb k i && Nat.eqb l j && Nat.eqb m h)%bool then t else x k l m.
